// Bounds of a prediction that cost little, for whoever must choose among many layouts.
#pragma once

#include <cstdint>

#include "braid/plan/cluster.h"
#include "braid/plan/formula_set.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// Never more than predict_run() says of the step, whatever the schedule, ZeRO's stage and the cut of the model are: the
// work of all stages shared out evenly over the ranks of pipe, and nobody ever waits. With equal shares of the batch
// also never more than with others, under which some data rank has as many microbatches.
double least_step_seconds(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas);

// Never more than predict_run() says of the fullest rank: the states of all parameters shared out evenly, and nothing
// else.
int64_t least_rank_bytes(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas);

}  // namespace braid::plan
