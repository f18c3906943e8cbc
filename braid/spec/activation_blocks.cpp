#include "braid/spec/activation_blocks.h"

#include <algorithm>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/spec/partition.h"

namespace braid::spec {

std::string activation_blocks_fault(const MemorySpec& spec, int num_stages) {
  if (spec.activation_blocks == kAllBlocks) return "";
  const auto counts = partition_list(spec.activation_blocks);
  if (!counts || spec.activation_blocks.find_first_not_of("0123456789, \t") != std::string::npos) {
    return "must be \"all\", a number of blocks, or one for each stage, separated by commas";
  }
  if (counts->size() == 1 || num_stages == 0 || std::ssize(*counts) == num_stages) return "";
  return cat("must have one number for all stages or one for each of ", num_stages);
}

int blocks_on_tier(const MemorySpec& spec, int stage, int num_blocks) {
  if (is_resident(spec.activations)) return 0;
  if (spec.activation_blocks == kAllBlocks) return num_blocks;
  const std::vector<double> counts = partition_list(spec.activation_blocks).value();
  check(counts.size() == 1 || stage < std::ssize(counts), "every stage has a number in memory.activation_blocks");
  return static_cast<int>(std::min<double>(counts[counts.size() == 1 ? 0 : stage], num_blocks));
}

}  // namespace braid::spec
