// Exact dynamic programming over the cuts of a partition, for one criterion at a time.
//
// Stages are placed from both ends of the model inwards; the next one is of a rank that has some of its stages already,
// where there is one. A state is the range of units still to be placed and the load of every rank that has some of its
// stages but not all; a state that is better in nothing than another of the same range is dropped. With one stage per
// rank there is no such rank, and with nested stages (0 and S - 1 on one rank, 1 and S - 2 on the next) at most one.
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
  std::vector<int> first_unit;  // when found, as in Partition
  double value = 0;             // of the criterion, as the caps count it
};

// The partition within the caps for which the largest bytes or seconds of a rank, the largest seconds of a stage, or
// the sum of squares is smallest. Deterministic.
CutSearch search_cuts(const StageCosts& costs, const Caps& caps, Criterion criterion);

}  // namespace braid::plan
