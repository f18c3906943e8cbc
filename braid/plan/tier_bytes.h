// Model states on tiers (memory.optimizer, memory.gradients, memory.parameters).
#pragma once

#include "braid/plan/model_states.h"

namespace braid::plan {

// Returns what is in the device's memory of the model states that a rank holds, `held`, by their tiers. Of optimizer
// states on disk, and of gradients and weights that their updates move with them, these are kChunksInMemory chunks.
// Units of weights and gradients in use are in moved_unit_bytes().
StateBytes in_memory(const RunSpec& spec, const StateBytes& held);
// Returns this rank's shard of `held`, of which ZeRO keeps a part whole in memory. On a tier it is always a shard.
StateBytes shard_of(const RunSpec& spec, StateBytes held);
// Returns the bytes on `tier` of what a rank holds. Speculative updates (spec/early_updates.h) have old copies on disk.
double bytes_on(Tier tier, const RunSpec& spec, const StateBytes& held);
// Returns the bytes of the old copy of weights in memory that a speculative update writes to disk. `held`: a shard.
double backup_bytes(const RunSpec& spec, const StateBytes& held);

}  // namespace braid::plan
