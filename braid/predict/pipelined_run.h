// A run's step as far as the pipeline takes it: passes, transfers, activations. Runs that differ in sync.zero and
// sync.zero_group alone share all of it, which is most of what a prediction costs.
#pragma once

#include <vector>

#include "braid/predict/data_exchange.h"
#include "braid/predict/predict_run.h"

namespace braid {

// Whether the two differ in nothing else.
bool alike_but_for_zero(const RunSpec& a, const RunSpec& b);

struct DevicesInUse {
  double count = 0;
  double peak = 0;  // flops a second of all
};

class PipelinedRun {
 public:
  // As predict_run(). `cluster` outlives this.
  PipelinedRun(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options);
  PipelinedRun(const PipelinedRun&) = delete;
  PipelinedRun& operator=(const PipelinedRun&) = delete;

  const RunSpec& spec() const { return spec_; }
  // What predict_run() says of the run with these two.
  Prediction with_zero(int zero, int zero_group);

 private:
  StepSeconds pipeline_seconds(const PipelineOutcome& outcome) const;
  void add_exchanges(StepSeconds& seconds) const;
  void add_states(Prediction& prediction) const;

  RunSpec spec_;
  const Cluster cluster_;  // as the ranks see it
  const FormulaSet formulas_;
  const RunLayout layout_;
  const std::vector<DeviceRates> rates_;
  const PlannedRun run_;
  const ScheduleTraits& traits_;
  const double crowd_;             // ranks for each core, where they share cores
  const double step_flops_;        // of the model alone
  const DevicesInUse used_;        // by the ranks
  std::vector<RankShare> shares_;  // of pipeline ranks
  Prediction pipelined_;           // without states, and without what ranks that hold copies exchange and update
};

}  // namespace braid
