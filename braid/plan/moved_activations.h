// Activations on a tier (memory.activations): what leaves memory between the passes of a microbatch.
#pragma once

#include "braid/plan/braid_memory.h"

namespace braid::plan {

// The bytes of a stage's segments (nn/segments.h): all of a microbatch, which move to the tier and back, and those in
// memory at a time, which are two segments: one that runs, and its neighbour's transfer. What the head keeps stays.
struct MovedActivations {
  double all = 0, at_a_time = 0;
};
// Returns zeros if activations are resident.
MovedActivations moved_activations(const RunSpec& spec, const ActivationBytes& tensors, const StageLoad& load);

}  // namespace braid::plan
