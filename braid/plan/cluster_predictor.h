// Predictor of a cluster. What the layouts asked for last share is computed once.
#pragma once

#include <cstdint>
#include <list>
#include <string>

#include "braid/plan/cluster.h"
#include "braid/plan/pipelined_run.h"
#include "braid/plan/prediction.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// The interface through which a search gets predictions of layouts.
class Predictor {
 public:
  virtual ~Predictor() = default;

  virtual Prediction predict(const RunSpec& spec) = 0;
  // The cut into as many stages as `spec` has whose slowest rank computes least, as pipeline.partition says it.
  virtual std::string balanced_partition(const RunSpec& spec) = 0;
  // Shares of the batch in proportion to the speed of data ranks, as mesh.batch_shares says them. `spec` has equal
  // ones.
  virtual std::string balanced_shares(const RunSpec& spec) = 0;
  // Bounds that cost little. Never more than the step of predict(spec) takes, and the same for all layouts of the same
  // work (layout_space.h).
  virtual double least_seconds(const RunSpec& spec) = 0;
  // Never more than the fullest rank of predict(spec) holds, whatever is computed again.
  virtual int64_t least_bytes(const RunSpec& spec) = 0;
};

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
