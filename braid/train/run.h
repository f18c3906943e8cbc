// A whole training run: from a spec to weights on disk. It prints nothing; an observer is told what happens.
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
#include "braid/train/peak_probe.h"
#include "braid/train/step_report.h"

namespace braid::train {

struct RunStart {
  RunSpec spec;  // resolved: vocabulary filled in, a measured partition as the list that it is
  std::optional<plan::Partition> measured_partition;  // where pipeline.partition asked for one and none was saved
  int64_t num_params = 0;
  int64_t padded_vocab = 0;
  int64_t num_documents = 0, train_tokens = 0, validation_tokens = 0;
  double bigram_entropy = 0;  // nats per token on the validation part
  int threads = 1;            // per rank
  int64_t first_step = 0;     // > 0 when resumed
};

// A measurement on what was held out.
struct Evaluation {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int64_t step = 0;                 // after so many updates
  double loss = kUnknown;           // nats per token
  double loss_per_byte = kUnknown;  // nats per byte of text, whatever the tokenizer makes of it (EvaluatedText)
};

struct RunEnd {
  RunSpec spec;  // resolved, as in RunStart
  int64_t num_steps = 0;
  Evaluation evaluation;  // the last; its losses are NaN when nothing is held out, or the run was interrupted
  double bigram_entropy = 0;
  std::string checkpoint;       // folder of the last one
  schedule::Timeline timeline;  // of the last step, one row per world rank
  bool interrupted = false;
};
// The fields that world rank 0 returns (base/packed.h). The caller has spec and bigram_entropy.
template <class Pack>
void members(Pack& pack, RunEnd& end) {
  pack(end.num_steps, end.evaluation, end.checkpoint, end.timeline.ranks, end.interrupted);
}

// Told where world rank 0 runs, in order: on its thread, or in its process, so that what it remembers is gone with that
// (run.ranks). Exceptions end the run on all ranks.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_start(const RunStart& start) = 0;
  // Called with the peak for utilisation: at the start if train.peak_flops has it, else after the first step, or never
  // if a step is too small to be worth a measurement. Called again before the report of each step that has exceeded it.
  virtual void on_peak(const PeakFlops& peak) {}
  // Once a start, after the first step, unless steps are too small or the schedule has no name: what the rates of the
  // run's own ranks, measured then, let expect of all steps. on_choice() in its place where there is no memory to
  // measure them.
  virtual void on_prediction(const plan::Prediction& prediction) {}
  // After it, where there are several ranks: data and model parallelism each by itself on as many.
  virtual void on_comparison(const std::vector<plan::ParallelismRow>& rows) {}
  virtual void on_step(const StepReport& report) = 0;  // every step, whatever train.log_every is
  // Once, when the steps from here on are slower than they could be: why.
  virtual void on_slow_path(const std::string& why) {}
  // Called with each automatic choice and its reason: from measurements, a checkpoint and what it lacks, data that are
  // left out, or missing memory.
  virtual void on_choice(const std::string& choice) {}
  virtual void on_evaluation(const Evaluation& evaluation) = 0;
  // Asked after on_start() where the checkpoint that the run goes on from was saved before the evaluation of its step:
  // whether that evaluation was heard since, by this observer or by one before it. Where it was not, it is made.
  virtual bool knows_evaluation(int64_t step) { return false; }
  // Asked after on_start() where checkpoint.keep_best is set: the validation losses by step that this observer, or one
  // before it in the run's folder, has heard.
  virtual std::map<int64_t, double> heard_evaluations() { return {}; }
  // Before an evaluation, where replicas run apart and on_step() tells of one of them: the mean training loss of all
  // over the steps since they were last evaluated, `num_steps` of each.
  virtual void on_replicas(int64_t step, double loss, int64_t num_steps) {}
  // The run went back by itself, to where it was after `step` steps: what was told of later ones counts no more. Why,
  // and what it goes on with, in a sentence.
  virtual void on_rollback(int64_t step, const std::string& why) {}
  virtual void on_checkpoint(int64_t step, const std::string& directory) = 0;
};

// Returns the limits of this machine: 16 ranks, or four per core if that is more, on each of `num_hosts` hosts.
spec::HostLimits host_limits(int num_hosts = 1);

// The caller's control over a run, and the launcher of its ranks. Functions are called on every rank; where ranks are
// processes, they read memory shared with the caller.
struct RunControls {
  // Asked after each step, each save and each evaluation; when any rank says yes, all finish that step, save and
  // return; an evaluation that was due there is made when the run is resumed.
  std::function<bool()> stop_requested;
  // Returns true if an extra save was requested that no rank has taken yet. The run continues after it. Called together
  // with stop_requested.
  std::function<bool()> takes_save_request = [] { return false; };
  // Before the first step.
  std::function<void()> on_begin = [] {};
  // Called with the resolved spec before anything is allocated; what it throws refuses the run.
  std::function<void(const RunSpec&)> admit = [](const RunSpec&) {};
  const Launcher* launcher = nullptr;       // null: as run.ranks says
  spec::HostLimits limits = host_limits();  // that the run was read with
  std::vector<int> host_of_rank;            // by rank of the world; empty: all are on this one
};

// Runs `spec`, whose fields are each valid (parse_run). train.resume is a checkpoint or empty, and train.out the
// caller's alone for as long as this runs. Throws ConfigError with every problem before any rank starts, RunError,
// CommError, IoError.
//
// Where ranks are processes (run.ranks), the caller runs no other thread and has not computed with LibTorch. Signals
// are the caller's to answer. With a launcher of several hosts each of them calls this, with the same spec.
RunEnd run_training(const RunSpec& spec, RunObserver& observer, const RunControls& controls);

}  // namespace braid::train
