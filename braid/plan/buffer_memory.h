// The memory of a rank's gradients and weights on their way to and from other ranks and microbatches.
#pragma once

#include "braid/plan/data_exchange.h"

namespace braid::plan {

// Returns the bytes of a rank's exchange buffers under ZeRO 2 and 3, which stay allocated from microbatch to
// microbatch, and of the units of gradients that are moved between tiers, which are freed after their use.
// Only sharded and moved parameters count. A table is an embedding's weight. Under ZeRO the buffers hold:
//
//   gradients to be reduce-scattered          those of three blocks' parameters and of each use of a table
//   weights, under ZeRO 3 only                those of the running blocks and of the part that runs next; or those of
//                                             the stages that sync.zero_gather "stage" keeps gathered
double exchange_buffer_bytes(const PlannedRun& run, const RankShare& share);

// Weights of a rank on other tiers.
struct MovedWeights {
  double in_memory = 0;  // bytes when the rank holds most: the units in use, the next ones, and those that stay
  double kept = 0;       // fraction of all that stays between uses
};
// Returns the weights of a rank all of whose other memory takes `beside` bytes. Weights on disk stay between uses as
// far as memory.limit_gb leaves space (sync/unit_residency.h).
MovedWeights moved_weights(const PlannedRun& run, const RankShare& share, double beside);

// Returns the bytes of a rank's gradients under train.reduction "reproducible". A tree adds the m microbatches of an
// update (param/grad_sink.h). It keeps log2(m) + 1 gradients of each use of a parameter, whole under every sync.zero.
double tree_gradient_bytes(const PlannedRun& run, const RankShare& share);

}  // namespace braid::plan
