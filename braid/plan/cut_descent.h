// Local search, for partitions that are too many to be searched exactly.
#pragma once

#include "braid/plan/stage_costs.h"

namespace braid::plan {

// Moves one cut, or all cuts of a run of neighbours, by a few units as long as the score gets better. Deterministic.
std::vector<int> improved_cuts(const StageCosts& costs, std::vector<int> first_unit, int64_t limit_bytes);

}  // namespace braid::plan
