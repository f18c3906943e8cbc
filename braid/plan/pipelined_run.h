// A run's step as far as the pipelines of its replicas take it: passes, transfers, activations. Runs that differ in
// sync.zero and sync.zero_group alone share all of it, which is most of what a prediction costs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/data_exchange.h"
#include "braid/plan/predict_run.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// The devices of a cluster that a run uses, and their rates.
struct DevicesInUse {
  double count = 0;
  double peak = 0;  // flops a second of all
};
// The devices that have ranks, the first ones; cores that ranks share are all in use.
DevicesInUse devices_in_use(const RunSpec& spec, const Cluster& cluster);

// Returns the rate of matrix products on all devices together, in FLOP/s: no layout is faster.
double best_rate_of_all(const RunSpec& spec, const Cluster& cluster);

// Returns true if the two differ in nothing else.
bool alike_but_for_zero(const RunSpec& a, const RunSpec& b);

class PipelinedRun {
 public:
  // As predict_run(). `cluster` outlives this.
  PipelinedRun(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options);
  PipelinedRun(const PipelinedRun&) = delete;
  PipelinedRun& operator=(const PipelinedRun&) = delete;

  const RunSpec& spec() const { return spec_; }
  // Returns predict_run()'s prediction of the run with these two keys.
  Prediction with_zero(int zero, int zero_group);
  // Returns the mesh.batch_shares with which the slowest rank computes least: faster replicas get more microbatches.
  // "equal" if all are equally fast, or if the schedule does not take such numbers. REQUIRES: equal shares.
  std::string balanced_shares() const;

 private:
  // Those that are alike (replica_layouts()).
  struct Replica {
    explicit Replica(RunLayout its_layout) : layout(std::move(its_layout)) {}
    PassSeconds slowest_rank() const;  // of a microbatch

    RunLayout layout;
    std::vector<RankShare> shares;  // of pipeline ranks
    std::vector<bool> repeats;      // of each, whether it is the share of the rank before it
    Prediction pipelined;           // without states, and without what ranks that hold copies exchange and update
  };
  PlannedRun planned(const Replica& replica) const { return {spec_, cluster_, formulas_, replica.layout, rates_}; }
  void add_replica(RunLayout layout, const PredictOptions& options);
  StepSeconds pipeline_seconds(const Replica& replica, const PipelineOutcome& outcome) const;
  void add_exchanges(const Replica& replica, StepSeconds& seconds) const;
  void add_states(const Replica& replica, Prediction& prediction) const;

  RunSpec spec_;
  const Cluster cluster_;  // as the ranks see it
  const FormulaSet formulas_;
  const std::vector<DeviceRates> rates_;
  const ScheduleTraits& traits_;
  const double step_flops_;     // of the model alone
  const double bound_seconds_;  // of a step, whatever the layout
  const DevicesInUse used_;     // by the ranks
  std::vector<Replica> replicas_;
  std::vector<size_t> replica_of_data_rank_;  // empty where all are alike
};

}  // namespace braid::plan
