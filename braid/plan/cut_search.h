// Exact dynamic programming over the cuts of a partition (partition.h), for one criterion at a time.
//
// Stages are placed from both ends of the model inwards. The next stage is one whose rank already has a stage, if there
// is such a stage. A rank is open while some of its stages are placed and others are not. A state is the range of units
// that are still to be placed, and the load of each open rank. A state is dropped if another state of the same range is
// at least as good in its criterion and in all loads.
//
// With one stage per rank no rank is ever open. With nested stages (0 and S - 1 on one rank, 1 and S - 2 on the next)
// at most one rank is open.
#pragma once

#include <limits>
#include <optional>

#include "braid/plan/stage_costs.h"

namespace braid::plan {

enum class Criterion { RankBytes, RankSeconds, StageSeconds, Squares };

// Limits that a partition must not exceed.
struct Caps {
  int64_t rank_bytes = std::numeric_limits<int64_t>::max();
  double rank_seconds = std::numeric_limits<double>::infinity();
  double stage_seconds = std::numeric_limits<double>::infinity();
};

struct CutSearch {
  enum class End { Found, NoneFits, TooManyStates } end;
  std::vector<int> first_unit;  // as in Partition, if one was found
  double value = 0;             // the criterion's value; it can be used as a cap
};

// Returns the partition within the caps that minimizes the criterion: the largest bytes of a rank, the largest seconds
// of a rank, the largest seconds of a stage, or the sum of the squares of the stages' seconds. Deterministic.
CutSearch search_cuts(const StageCosts& costs, const Caps& caps, Criterion criterion);

}  // namespace braid::plan
