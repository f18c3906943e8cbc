// Predicts the layouts of a search on one cluster. ClusterPredictor caches its latest predictions, so that layouts that
// differ only in ZeRO share most of the computation.
#pragma once

#include <cstdint>
#include <list>
#include <string>

#include "braid/plan/cluster.h"
#include "braid/plan/pipelined_run.h"
#include "braid/plan/prediction.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// The interface through which a search predicts layouts.
class Predictor {
 public:
  virtual ~Predictor() = default;

  virtual Prediction predict(const RunSpec& spec) = 0;
  // Returns the pipeline.partition that minimizes the compute time of the slowest rank, for the number of stages of
  // `spec`; "even" if that is the even one.
  virtual std::string balanced_partition(const RunSpec& spec) = 0;
  // Returns the mesh.batch_shares that minimize the compute time of the slowest data rank; "equal" if equal shares are
  // best. REQUIRES: `spec` has equal shares.
  virtual std::string balanced_shares(const RunSpec& spec) = 0;
  // Returns a cheap lower bound on the step time of predict(spec). It is equal for layouts with same_work()
  // (layout_space.h).
  virtual double least_seconds(const RunSpec& spec) = 0;
  // Returns a cheap lower bound on the memory of the fullest rank in predict(spec). The bound holds for every recompute
  // policy.
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
  // Returns the account of the run's model. All layouts of a search have one model and one optimizer.
  const AccountPtr& account_of(const RunSpec& spec);

  const Cluster& cluster_;
  const PredictOptions options_;
  AccountPtr account_;  // of the latest model and groups of parameters
  std::vector<ParameterGroup> groups_;
  std::list<PipelinedRun> runs_;  // cache: the latest runs that were predicted, the newest first
  RunSpec cut_of_;                // argument of the latest balanced_partition()
  std::string cut_;               // the result of that call; empty: there was none
};

}  // namespace braid::plan
