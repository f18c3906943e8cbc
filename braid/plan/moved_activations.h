// Activations on a tier (memory.activations): what leaves memory between the passes of a microbatch.
#pragma once

#include "braid/plan/braid_memory.h"
#include "braid/plan/recompute_chain.h"

namespace braid::plan {

// The memory of a stage's activations. What the head keeps stays in memory.
struct MovedActivations {
  ChainMemory memory;  // of a microbatch
  MovedPeaks peaks;
  // The others are 0 unless all blocks move.
  double last = 0;          // bytes of the last block: backward finds it in memory where it follows the forward
  double forward = 0;       // the most that a block's forward holds in addition, less what the head will keep
  double head_working = 0;  // the most that the head's backward holds in addition to what is kept; 0 if no block moves
};
// Returns zeros if all activations of the stage are resident.
MovedActivations moved_activations(const PlannedRun& run, const ActivationBytes& tensors, const StageLoad& load);

}  // namespace braid::plan
