// Predictor of a cluster. What the layouts asked for last share is computed once.
#pragma once

#include <list>

#include "braid/plan/cluster.h"
#include "braid/plan/pipelined_run.h"
#include "braid/plan/predictor.h"

namespace braid::plan {

class ClusterPredictor final : public Predictor {
 public:
  // `cluster` outlives this.
  ClusterPredictor(const Cluster& cluster, PredictOptions options) : cluster_(cluster), options_(options) {}

  Prediction predict(const RunSpec& spec) override;
  std::string balanced_partition(const RunSpec& spec) override;
  std::string balanced_shares(const RunSpec& spec) override;
  double least_seconds(const RunSpec& spec) override;
  int64_t least_bytes(const RunSpec& spec) override;

  const PredictOptions& options() const { return options_; }

 private:
  PipelinedRun& run_of(const RunSpec& spec);

  const Cluster& cluster_;
  const PredictOptions options_;
  std::list<PipelinedRun> runs_;  // the last ones asked for, the latest first
  RunSpec cut_of_;                // that was asked for last
  std::string cut_;               // it; empty: none was
};

}  // namespace braid::plan
