// Predicts a run in two parts. The first part is the pipeline: passes, transfers between stages, and activations. The
// second part depends on ZeRO: exchanges over data ranks, the update, and model states. Runs that differ only
// in sync.zero and sync.zero_group share the first part, which is most of the work of a prediction.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/data_exchange.h"
#include "braid/plan/predict_run.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// The devices that a run uses.
struct DevicesInUse {
  double count = 0;
  double peak = 0;  // peak operations per second of all of them together
};
// Returns the devices on which ranks run: the first ones of the cluster. On CPU hosts (DeviceGroup::shared_cores) a
// device is a core, and all cores count as used.
DevicesInUse devices_in_use(const RunSpec& spec, const Cluster& cluster);

// Returns the highest rate of matrix products on all devices of the cluster together, in operations per second. No
// layout is faster.
double best_rate_of_all(const RunSpec& spec, const Cluster& cluster);

// Returns true if the two runs are equal except for sync.zero and sync.zero_group.
bool alike_but_for_zero(const RunSpec& a, const RunSpec& b);

// The predicted step of the data ranks whose layouts are equal.
struct PredictedStep {
  std::vector<int> data_ranks;  // empty: all
  schedule::Timeline timeline;  // of the ranks of one pipeline (step_timeline.h); empty if it was not simulated
};

class PipelinedRun {
 public:
  // Takes the arguments of predict_run(). `cluster` outlives this.
  PipelinedRun(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options);
  PipelinedRun(const PipelinedRun&) = delete;
  PipelinedRun& operator=(const PipelinedRun&) = delete;

  const RunSpec& spec() const { return spec_; }
  // Returns predict_run()'s prediction of the run with these values of sync.zero and sync.zero_group.
  Prediction with_zero(int zero, int zero_group);
  // Returns the steps of the run as the latest with_zero() predicted it. REQUIRES: the options keep timelines.
  std::vector<PredictedStep> steps() const;
  // Returns the mesh.batch_shares that minimize the compute time of the slowest data rank: faster data ranks get more
  // microbatches. Returns "equal" if equal shares are best, or if the schedule does not accept such numbers of
  // microbatches. REQUIRES: the run has equal shares.
  std::string balanced_shares() const;

 private:
  // The pipeline of all data ranks that have an equal layout (replica_layouts()).
  struct Replica {
    explicit Replica(RunLayout its_layout) : layout(std::move(its_layout)) {}
    PassSeconds slowest_rank() const;  // passes of one microbatch

    RunLayout layout;
    std::vector<RankShare> shares;  // each pipeline rank's part of the model
    std::vector<bool> repeats;      // for each pipeline rank: its part equals that of the rank before it
    Prediction pipelined;           // the first part of the prediction
    std::vector<double> received;   // bytes of tensors from other ranks, by rank; empty: not played
    schedule::Timeline timeline;    // if the options keep it
  };
  PlannedRun planned(const Replica& replica) const { return {spec_, cluster_, formulas_, replica.layout, rates_}; }
  void add_replica(RunLayout layout, const PredictOptions& options);
  StepSeconds pipeline_seconds(const Replica& replica, const PipelineOutcome& outcome) const;
  Prediction whole(const Replica& replica) const;                            // both parts
  void add_exchanges(const Replica& replica, Prediction& prediction) const;  // after add_states()
  void add_states(const Replica& replica, Prediction& prediction) const;
  // Returns the bytes of the rank's tensors that come from other ranks or go to them.
  double received_by(const Replica& replica, int rank) const;
  // Returns the fraction of the rank's weights on tiers that stays between uses. REQUIRES: `memory` has the states.
  double kept_weights(const Replica& replica, size_t rank, const RankMemory& memory) const;
  schedule::Timeline step_of(const Replica& replica) const;

  RunSpec spec_;
  const Cluster cluster_;  // with_cores_of_ranks()
  const FormulaSet formulas_;
  const std::vector<DeviceRates> rates_;
  const ScheduleTraits& traits_;
  double step_flops_ = 0;     // operations of the model in a step, without recomputation
  double bound_seconds_ = 0;  // lower bound on a step with any layout
  const DevicesInUse used_;   // devices that the ranks use
  std::vector<Replica> replicas_;
  std::vector<size_t> replica_of_data_rank_;  // index into replicas_; empty: all data ranks are alike
};

}  // namespace braid::plan
