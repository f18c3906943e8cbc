// Activations on a tier (memory.activations): what leaves memory between the passes of a microbatch.
#pragma once

#include "braid/plan/braid_memory.h"

namespace braid::plan {

// The bytes of a stage's segments (nn/segments.h). What the head keeps stays in memory.
struct MovedActivations {
  double all = 0;        // of a microbatch: they move to the tier and back
  double at_a_time = 0;  // in memory during a pass: a segment that runs, and its neighbour, which is moved meanwhile
  double forward = 0;    // the most that a block's forward holds in addition, less what the head will keep
};
// Returns zeros if activations are resident.
MovedActivations moved_activations(const RunSpec& spec, const ActivationBytes& tensors, const StageLoad& load);

}  // namespace braid::plan
