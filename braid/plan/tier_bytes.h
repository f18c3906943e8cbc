// Model states on tiers (memory.optimizer, memory.gradients, memory.parameters).
#pragma once

#include "braid/plan/model_states.h"

namespace braid::plan {

// Returns what is in the device's memory of the model states that a rank holds, `held`, by their tiers. Of optimizer
// states on disk, and of gradients and weights that their updates move with them, these are kChunksInMemory chunks.
// Units of weights and gradients in use are in moved_unit_bytes().
StateBytes in_memory(const RunSpec& spec, const StateBytes& held);
// Returns the bytes of `held` that are on `tier`.
double bytes_on(Tier tier, const MemorySpec& spec, const StateBytes& held);

}  // namespace braid::plan
