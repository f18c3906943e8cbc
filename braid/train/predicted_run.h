// The prediction of a run from the rates of its own ranks.
#pragma once

#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/parallelism_table.h"
#include "braid/plan/prediction.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

struct PredictedRun {
  plan::Prediction prediction;
  std::vector<plan::ParallelismRow> ways;  // empty for one rank, since no link was measured
};

// Throws ConfigError and RunError if the run cannot be predicted.
PredictedRun predicted_with(const plan::Cluster& rates, const RunSpec& spec);

}  // namespace braid::train
