// The part of a step that the pipelines of its replicas determine: passes, transfers, activations. Runs that differ
// only in sync.zero and sync.zero_group share this part, which is most of the cost of a prediction.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/data_exchange.h"
#include "braid/plan/predict_run.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// The number of devices that a run uses, and their peak.
struct DevicesInUse {
  double count = 0;
  double peak = 0;  // operations per second of all of them
};
// Returns the devices that have ranks, which are the first ones of the cluster. Shared cores are all in use.
DevicesInUse devices_in_use(const RunSpec& spec, const Cluster& cluster);

// Returns the rate of matrix products on all devices together, in operations per second. No layout is faster.
double best_rate_of_all(const RunSpec& spec, const Cluster& cluster);

// Returns true if the two runs are equal except for sync.zero and sync.zero_group.
bool alike_but_for_zero(const RunSpec& a, const RunSpec& b);

class PipelinedRun {
 public:
  // Takes the arguments of predict_run(). `cluster` outlives this.
  PipelinedRun(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options);
  PipelinedRun(const PipelinedRun&) = delete;
  PipelinedRun& operator=(const PipelinedRun&) = delete;

  const RunSpec& spec() const { return spec_; }
  // Returns predict_run()'s prediction of the run with these values of sync.zero and sync.zero_group.
  Prediction with_zero(int zero, int zero_group);
  // Returns the mesh.batch_shares with which the slowest rank computes least: faster replicas get more microbatches.
  // Returns "equal" if all replicas are equally fast, or if the schedule does not accept such numbers. REQUIRES: equal
  // shares.
  std::string balanced_shares() const;

 private:
  // Data ranks with equal layouts (replica_layouts()).
  struct Replica {
    explicit Replica(RunLayout its_layout) : layout(std::move(its_layout)) {}
    PassSeconds slowest_rank() const;  // passes of one microbatch

    RunLayout layout;
    std::vector<RankShare> shares;  // share of each pipeline rank
    std::vector<bool> repeats;      // for each pipeline rank: its share equals that of the rank before it
    Prediction pipelined;           // without model states, exchanges between copies, and updates
  };
  PlannedRun planned(const Replica& replica) const { return {spec_, cluster_, formulas_, replica.layout, rates_}; }
  void add_replica(RunLayout layout, const PredictOptions& options);
  StepSeconds pipeline_seconds(const Replica& replica, const PipelineOutcome& outcome) const;
  void add_exchanges(const Replica& replica, StepSeconds& seconds) const;
  void add_states(const Replica& replica, Prediction& prediction) const;

  RunSpec spec_;
  const Cluster cluster_;  // the cluster as the ranks see it
  const FormulaSet formulas_;
  const std::vector<DeviceRates> rates_;
  const ScheduleTraits& traits_;
  double step_flops_ = 0;     // operations of the model in a step, without recomputation
  double bound_seconds_ = 0;  // lower bound of a step, for every layout
  const DevicesInUse used_;   // devices that the ranks use
  std::vector<Replica> replicas_;
  std::vector<size_t> replica_of_data_rank_;  // index into replicas_; empty: all data ranks are alike
};

}  // namespace braid::plan
