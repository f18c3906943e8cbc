#include "braid/plan/moved_activations.h"

#include "braid/plan/pass_bytes.h"
#include "braid/plan/stage_chain.h"

namespace braid::plan {

MovedActivations moved_activations(const PlannedRun& run, const ActivationBytes& x, const StageLoad& load) {
  if (load.on_tier == 0) return {};
  const RecomputeChain chain = stage_chain(run, x, load);
  MovedActivations moved{.memory = chain_memory(chain, segments_of(load), load.on_tier)};
  moved.peaks = moved_peaks(chain, segments_of(load), load.on_tier);
  if (load.head) moved.head_working = chain.head_working;
  if (load.on_tier < std::ssize(load.order)) return moved;
  moved.last = moved.memory.last_moved;
  const double stays = load.head ? head_kept_bytes(x, load.recompute.keeps) : 0;
  if (!load.recompute.is_by_segments()) moved.forward = chain.forward - stays;
  return moved;
}

}  // namespace braid::plan
