// A whole training run, from a spec to weights on disk. It prints nothing and reports to an observer.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "braid/launch/launcher.h"
#include "braid/plan/parallelism_table.h"
#include "braid/plan/partition.h"
#include "braid/plan/prediction.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"
#include "braid/spec/problems.h"
#include "braid/spec/run_spec.h"
#include "braid/train/lost_workers.h"
#include "braid/train/peak_probe.h"
#include "braid/train/step_report.h"

namespace braid::train {

struct RunStart {
  RunSpec spec;  // resolved: has the vocabulary, and a measured partition as a list
  // Set if pipeline.partition is "measured" and the checkpoint has no partition that fits.
  std::optional<plan::Partition> measured_partition;
  int64_t num_params = 0, num_trained = 0;  // elements of all parameters, and of those that are not frozen
  int64_t padded_vocab = 0;
  int64_t num_documents = 0, train_tokens = 0, validation_tokens = 0;
  double bigram_entropy = 0;  // in nats per token, on the validation part
  int threads = 1;            // per rank
  int64_t first_step = 0;     // > 0 when resumed
};

// A measurement on the validation part of the data.
struct Evaluation {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int64_t step = 0;                 // number of updates before it
  double loss = kUnknown;           // in nats per token
  double loss_per_byte = kUnknown;  // in nats per byte of text, so tokenizers compare (EvaluatedText)
};

struct RunEnd {
  RunSpec spec;  // resolved, as in RunStart
  int64_t num_steps = 0;
  Evaluation evaluation;  // the last one; its losses are NaN if nothing is held out, or if the run was interrupted
  double bigram_entropy = 0;
  std::string checkpoint;       // folder of the last checkpoint
  schedule::Timeline timeline;  // of the last step, one row per world rank
  bool interrupted = false;
};
// Packs the fields that world rank 0 returns (base/packed.h). The caller fills in spec and bigram_entropy.
template <class Pack>
void members(Pack& pack, RunEnd& end) {
  pack(end.num_steps, end.evaluation, end.checkpoint, end.timeline.ranks, end.timeline.disk, end.interrupted);
}

// Callbacks about the events of a run, in order. World rank 0 calls them on its thread. If ranks are processes
// (run.ranks), that is the observer's copy in rank 0's process, and its state is lost when that process ends. An
// exception ends the run on all ranks.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_start(const RunStart& start) = 0;
  // Called with the peak for utilisation: at the start if train.peak_flops gives it, else after the first step. Never
  // called if a step is too small to be worth a measurement. Called again before the report of each step that exceeded
  // the peak.
  virtual void on_peak(const PeakFlops& peak) {}
  // Called after the first step of the run, and after the first step that follows a rollback, with a prediction for all
  // steps. The rates of the run's ranks are measured just before. Not called if steps are small and few remain.
  // on_choice() is called instead if there is too little memory to measure, or if the run cannot be predicted.
  virtual void on_prediction(const plan::Prediction& prediction) {}
  // Called after on_prediction() if there are several ranks, with predictions for each form of data and model
  // parallelism by itself on the same number of ranks.
  virtual void on_comparison(const std::vector<plan::ParallelismRow>& rows) {}
  virtual void on_step(const StepReport& report) = 0;  // called after every step; train.log_every is not applied
  // Called once with the reason, if steps from now on are slower than they could be.
  virtual void on_slow_path(const std::string& why) {}
  // Called with each automatic choice and its reason. A reason is a measurement, the content of a checkpoint, data that
  // are left out, or too little memory.
  virtual void on_choice(const std::string& choice) {}
  virtual void on_evaluation(const Evaluation& evaluation) = 0;
  // Called after on_start() or on_rollback() if the checkpoint that the run resumes from was saved before the
  // evaluation of its step. Returns true if this observer, or an earlier one of the run, has received that evaluation
  // since. If it returns false, the run makes the evaluation.
  virtual bool knows_evaluation(int64_t step) { return false; }
  // Called after on_start() or on_rollback() if checkpoint.keep_best is set. Returns, by step, the validation losses
  // that this observer, or an earlier one in the run's folder, has received.
  virtual std::map<int64_t, double> recorded_evaluations() { return {}; }
  // Called before an evaluation if replicas run apart, since on_step() then reports one replica. `loss` is the mean
  // training loss of all replicas since the last evaluation, over `num_steps` steps of each.
  virtual void on_replicas(int64_t step, double loss, int64_t num_steps) {}
  // Called when the run goes on without a worker, whose process has died. The others have taken over its share of the
  // samples. on_step() reports rank 0's replica, which is not lost.
  virtual void on_lost_worker(const LostWorker& lost) {}
  // Called when the run has rolled back to its state after `step` steps. Reports of later steps are void. `why`
  // is a sentence with the reason and the batch that the run resumes with.
  virtual void on_rollback(int64_t step, const std::string& why) {}
  virtual void on_checkpoint(int64_t step, const std::string& directory) = 0;
};

// Returns the limits of this machine: 16 ranks, or four per core if that is more, on each of `num_hosts` hosts.
spec::HostLimits host_limits(int num_hosts = 1);

// The caller's control over a run, and the launcher of its ranks. admit() is called by run_training() before ranks
// start; the other functions are called on every rank. If ranks are processes, these functions must read memory that is
// shared with the caller.
struct RunControls {
  // Called after each step, each save and each evaluation. If it returns true on any rank, all ranks finish that step,
  // save and return. An evaluation that was due at that step is made when the run is resumed.
  std::function<bool()> stop_requested;
  // Returns true if an extra save was requested that no rank has taken yet. The run continues after it. Called together
  // with stop_requested.
  std::function<bool()> takes_save_request = [] { return false; };
  // Called before the first step.
  std::function<void()> on_begin = [] {};
  // Called with the resolved spec before the run allocates anything. An exception from it refuses the run.
  std::function<void(const RunSpec&)> admit = [](const RunSpec&) {};
  const Launcher* launcher = nullptr;       // null: the launcher of run.ranks
  spec::HostLimits limits = host_limits();  // the limits that the spec was parsed with
  std::vector<int> host_of_rank;            // number of each world rank's host; empty: all ranks are on this host
};

// Runs `spec`. Throws ConfigError with every problem before any rank starts, RunError, CommError and IoError. The
// caller handles signals. With a launcher of several hosts, each host calls this with the same spec.
//
// REQUIRES:
//   * each field of `spec` is valid by itself (parse_run);
//   * train.resume is a checkpoint or empty;
//   * nothing else writes to train.out while this runs;
//   * if ranks are processes (run.ranks), the caller runs no other thread and has not computed with LibTorch.
RunEnd run_training(const RunSpec& spec, RunObserver& observer, const RunControls& controls);

}  // namespace braid::train
