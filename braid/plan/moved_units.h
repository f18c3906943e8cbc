// The units of weights and gradients that pass through a rank's memory where memory.parameters or memory.gradients has
// them on another tier: the parameters of a block, those of the embedding or of the head, and a table that both use.
#pragma once

#include "braid/plan/data_exchange.h"

namespace braid::plan {

// Returns the bytes of the units that a rank holds in addition to its most activations. Weights are those of the part
// of the model that runs and of the next one (sync/unit_gatherer.h). Gradients are a unit that is computed, the one
// before it, which is in flight, and in fast mode the one before that, which is being written (sync/unit_sums.h). These
// two stay until the next unit is complete, so a microbatch begins with the last ones of the microbatch before. While a
// sum on disk is read, two chunks of it are in memory. `of_weight`: the bytes of an element of those weights.
double moved_unit_bytes(const PlannedRun& run, const RankShare& share, double of_weight);

}  // namespace braid::plan
