// A stage of a run as a chain of blocks (recompute_chain.h), for stages that list recomputed blocks and for the search
// of such lists.
#pragma once

#include <vector>

#include "braid/plan/braid_memory.h"
#include "braid/plan/recompute_chain.h"

namespace braid::plan {

// Returns the chain of a stage with StageLoad::order. The first form has only the bytes that are kept. Neither has the
// times. If blocks are on a tier, each block has a graph of its own.
RecomputeChain stage_chain(const ActivationBytes& tensors, const StageLoad& load);
RecomputeChain stage_chain(const PlannedRun& run, const ActivationBytes& tensors, const StageLoad& load);

// Returns the segments that the stage recomputes.
std::vector<spec::RecomputedBlocks> segments_of(const StageLoad& load);

}  // namespace braid::plan
