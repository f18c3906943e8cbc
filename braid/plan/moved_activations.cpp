#include "braid/plan/moved_activations.h"

#include <algorithm>

#include "braid/plan/pass_bytes.h"
#include "braid/plan/stage_chain.h"

namespace braid::plan {
namespace {

// Copies of tensors begin at blocks of the disk and fill them. Two segments have about as many tensors as this.
constexpr double kBlockOfDisk = 4096, kTensors = 48;

// Returns the most that a block keeps, or the input of recomputed blocks.
double most_of_segment(const ActivationBytes& x, const StageLoad& load) {
  if (load.recompute.is_by_segments()) {
    const RecomputeChain chain = stage_chain(x, load);
    double most = x.hidden;
    std::vector<char> is_recomputed(load.order.size());
    for (const spec::RecomputedBlocks& range : segments_of(load)) {
      std::fill(is_recomputed.begin() + range.begin, is_recomputed.begin() + range.end, 1);
    }
    for (size_t block = 0; block < chain.blocks.size(); ++block) {
      if (!is_recomputed[static_cast<size_t>(chain.first) + block]) most = std::max(most, chain.blocks[block].kept);
    }
    return most;
  }
  const bool selected = load.recompute.keeps == spec::Recompute::Keeps::Selected;
  const size_t of_layer = x.parts.size() / x.trained.size();
  double most = 0;
  for (size_t first = 0; first < x.parts.size(); first += of_layer) {
    double layer = 0;
    for (size_t part = first; part < first + of_layer; ++part) {
      if (load.parts[part] > 0) layer += selected ? x.parts[part].selected : x.parts[part].everything;
    }
    most = std::max(most, layer);
  }
  return most;
}

}  // namespace

MovedActivations moved_activations(const RunSpec& spec, const ActivationBytes& x, const StageLoad& load) {
  if (is_resident(spec.memory.activations)) return {};
  const double stays = load.head ? head_kept_bytes(x, load.recompute.keeps) : 0;
  const double all = kept_bytes(x, load) - stays, two = 2 * most_of_segment(x, load);
  const double at_a_time = spec.mesh.pipe > 1 ? two : std::min(all, two);  // one microbatch may follow another
  // Behind the last product: the block's input, the sum with the first branch, the product's input and output. In the
  // activation: its input in place of the product's output.
  const double forward = std::max(x.activated + 3 * x.hidden, x.inner + 2 * x.hidden) + x.gathered;
  return {all, at_a_time + kTensors * kBlockOfDisk, load.recompute.is_by_segments() ? 0 : forward - stays};
}

}  // namespace braid::plan
