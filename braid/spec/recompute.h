// memory.recompute read: what each pipeline stage keeps of a forward pass for its backward.
// It knows words and counts. What a layer can make again is nn's business, running blocks again memory's.
//
//   "none"       all that backward reads
//   "selective"  not the attention core nor the outputs of norms and activations
//   "every:K"    only the inputs of segments of K transformer blocks
//   "full"       the same as every:1
//
// One policy for all stages, or one for each, separated by commas: "full,none".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::spec {

struct Recompute {
  enum class Keeps { Everything, Selected, SegmentInputs };
  Keeps keeps = Keeps::Everything;
  int blocks = 0;  // transformer blocks of a segment

  bool operator==(const Recompute&) const = default;
};

// The entries of memory.recompute, without blanks around them: at least one, perhaps empty.
std::vector<std::string> recompute_entries(const MemorySpec& spec);
// Parses an entry; returns nothing for an unknown word.
std::optional<Recompute> recompute_policy(std::string_view entry);
// The entries with the unknown ones replaced by what is nearest; where there are several, as many as stages: cut off,
// or the last one repeated. num_stages below 1: nobody knows how many, so the first serves all.
std::string nearest_recompute(const MemorySpec& spec, int num_stages);

// Returns the policy of one stage. REQUIRES: `spec` has no problems.
Recompute stage_recompute(const MemorySpec& spec, int stage);

}  // namespace braid::spec
