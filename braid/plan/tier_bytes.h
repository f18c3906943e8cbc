// Model states on tiers (memory.optimizer, memory.gradients, memory.parameters).
#pragma once

#include "braid/plan/model_states.h"

namespace braid::plan {

// Returns what is in the device's memory of the model states that a rank holds, `held`, by their tiers. Of optimizer
// states on disk, and of gradients and weights that their updates move with them, these are kChunksInMemory chunks.
// Units of weights and gradients in use are in moved_unit_bytes().
StateBytes in_memory(const RunSpec& spec, const StateBytes& held);
// Returns the stage of ZeRO that a run has in effect: if ranks have shards of optimizer states, they also have shards
// of the gradients and parameters that are on disk. Predictions replace sync.zero by it.
int sharded_stage(const RunSpec& spec);
// Returns the bytes on `tier` of what a rank holds. Speculative updates (spec/early_updates.h) have old copies on disk.
double bytes_on(Tier tier, const RunSpec& spec, const StateBytes& held);
// Returns the bytes of the old copies that a speculative update of the weights in `held` writes to disk; 0 if it writes
// none.
double backup_bytes(const RunSpec& spec, const StateBytes& held);

}  // namespace braid::plan
