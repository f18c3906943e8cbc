// The loop over the steps of a run, on one rank. Does the work between steps and reports to the observer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "braid/ckpt/saved_checkpoints.h"
#include "braid/comm/communicator.h"
#include "braid/comm/rank_activity.h"
#include "braid/sync/run_request.h"
#include "braid/train/evaluated_text.h"
#include "braid/train/run.h"
#include "braid/train/run_checkpoints.h"
#include "braid/train/trainer.h"

namespace braid::train {

// The inputs of a run's ranks: one object if ranks are threads, a copy in each process otherwise.
struct SharedByRanks {
  const RunStart& start;
  const data::Corpus& corpus;
  const std::vector<std::string>& choices;  // automatic choices made before ranks start
  EvaluatedText& evaluated;                 // used by rank 0 only
  RunObserver& observer;                    // called by rank 0 only
  // The lock on the checkpoint that the run resumes from or takes its weights from. It is held until the run publishes
  // its own first checkpoint.
  ckpt::CheckpointReading& begun_with;
  const RunControls& controls;
};

using sync::RunRequest;

// Returns the caller's request to this rank. Takes a request to save.
RunRequest request_of(const RunControls& controls);

// The loop of one rank. All ranks of the world run it together.
class RankLoop {
 public:
  // All arguments outlive this.
  RankLoop(const SharedByRanks& shared, Trainer& trainer, Communicator& world);

  // Runs steps until all are done or a stop is requested, and saves the state after the last step. The caller fills in
  // the fields of the result that ranks do not have. At a spike() that causes a rollback, the result is empty and the
  // trainer must not be used any more.
  RunEnd run();
  // Returns a description of the spike; empty if there was none.
  const std::string& spike() const { return spike_; }
  // Returns the folder of the newest checkpoint that this loop has saved; empty if there is none.
  std::string saved() const;

 private:
  template <class Call>
  auto together(const Call& call);
  void tell_of_lost();
  RunEnd ended(bool interrupted);
  RunEnd ended_by(const StepReport& spike);
  template <class Call>
  void notify(const Call& call) const {
    if (world_.rank() != 0) return;
    if (comm::RankActivity* activity = world_.activity()) activity->begin_telling("telling of the run");
    call();
    doing("between steps");
  }
  void doing(const std::string& what) const;
  void report_step(StepReport report);
  void raise_peak(double reached_per_rank);
  RunRequest request();
  RunRequest agreed_request();
  RunRequest agreed(RunRequest mine);
  bool stops_after_work_between_steps(RunRequest request);
  void report_graphs();
  void report_choices();
  void measure_peak();
  void predict();
  bool worth_measuring_peak() const;
  bool worth_predicting() const;
  bool is_evaluated(int64_t step) const;
  bool evaluation_is_known();
  void evaluate();
  void compare_replicas();
  void check_replicas();
  void save();

  const SharedByRanks& shared_;
  const RunStart& start_;
  const TrainSpec& train_;
  Trainer& trainer_;
  Communicator& world_;
  RunCheckpoints checkpoints_;
  Evaluation evaluation_{-1};  // the last one; step -1: none yet
  bool save_is_due_ = false;   // rank 0 has requested a save that is not made yet (train.save_minutes)
  bool reported_graphs_ = false;
  bool has_predicted_ = false;
  bool owes_check_ = false;  // a check of replicas is due; it waits because they are apart
  std::string spike_;
  std::vector<double> own_losses_;  // if replicas run apart: losses of this rank's steps since the last evaluation
  PeakFlops peak_{train_.peak_flops, PeakSource::Given, 0};
};

}  // namespace braid::train
