// pipeline.partition by what a prediction says of blocks, ends and devices.
#pragma once

#include <string>

#include "braid/plan/cluster.h"
#include "braid/plan/formula_set.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// The cut whose slowest rank computes least, whatever its memory: fewer blocks beside the embedding and the head, more
// on faster devices. "even" where no cut has a faster one. `spec` is cut evenly, and has no problems for a plan.
std::string balanced_partition(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas);

}  // namespace braid::plan
