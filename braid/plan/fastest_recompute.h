// The search behind memory.recompute = "auto": what the stages of a run keep in memory, recompute, or move to the tier
// of memory.activations, such that the run fits in a limit of memory and is fastest.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "braid/plan/prediction.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

struct RecomputePlan {
  std::string policies;           // memory.recompute
  std::string activation_blocks;  // memory.activation_blocks
  Prediction prediction;          // of the run with them, on its nominal cluster

  void apply(MemorySpec& memory) const {
    memory.recompute = policies;
    memory.activation_blocks = activation_blocks;
  }
};

// Returns the policies with which no rank's predicted memory exceeds `limit` bytes and a step takes least time. A stage
// keeps everything ("none"), or selected tensors ("selective"), or recomputes segments ("full", "every:K",
// "blocks:LIST"). If memory.activations is a tier, the activations of its first blocks may move. Of the segments and
// the moved blocks of a stage whose rank has no other one, the choice is that of best_choices(); ranks with several
// stages divide their memory between them by a heuristic, and are at least as fast as with one of the policies "none",
// "selective", "full" and "every:K" for all stages, and as with all blocks on the tier. If nothing fits, returns the
// policies that need least memory of those tried.
//
// Other keys stay, `spec`'s own memory.recompute and memory.activation_blocks count as to be chosen. `is_legal` says
// whether a run can be trained. Returns nothing if the run cannot be predicted, or if its partition is measured.
std::optional<RecomputePlan> fastest_recompute(const RunSpec& spec, int64_t limit,
                                               const std::function<bool(const RunSpec&)>& is_legal);

}  // namespace braid::plan
