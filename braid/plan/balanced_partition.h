// Balanced pipeline.partition and mesh.batch_shares, from predicted times.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/formula_set.h"
#include "braid/schedule/schedule.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// mesh.batch_shares by what a prediction says of replicas (hardware-aware load balancing of Whale, Jia et al. 2022).

// Shares out so many equal units of work, whole ones and at least one each, so that the one that is done last is done
// as early as can be. `seconds` of a unit, by who does it. There is a unit for everybody (check).
std::vector<int> balanced_units(const std::vector<double>& seconds, int num_units);

// The shares of data ranks of which a microbatch takes so many seconds on the slowest rank of pipe, under which the one
// that computes longest computes least; "equal" where that is so of equal ones, or the schedule takes no such numbers
// of microbatches. `step` has those of all data ranks, of which each gets one at least (check).
std::string balanced_shares(const std::vector<double>& seconds, std::string_view schedule, ScheduleRequest step);

// The cut whose slowest rank computes least, whatever its memory: fewer blocks beside the embedding and the head, more
// on faster devices. "even" where no cut has a faster one. `spec` is cut evenly, and has no problems for a plan.
std::string balanced_partition(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas);

}  // namespace braid::plan
