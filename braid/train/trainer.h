// One rank of a training run: step, evaluate, checkpoint, report; nothing else. All methods are collective over the
// world.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/save.h"
#include "braid/data/corpus.h"
#include "braid/optim/loss_scaler.h"
#include "braid/optim/optimizer.h"
#include "braid/pipe/schedule_runtime.h"
#include "braid/schedule/schedule.h"
#include "braid/sync/replication.h"
#include "braid/train/block_executor.h"
#include "braid/train/rank_model.h"
#include "braid/train/step_report.h"
#include "braid/train/step_update.h"

namespace braid::train {

class Trainer {
 public:
  // `spec` has no problems and a resolved vocabulary. `corpus` and `world` outlive this. With train.init, whose weights
  // are those of spec.model (initial_weights.h), it begins with them; throws IoError and ConfigError then.
  Trainer(const RunSpec& spec, const data::Corpus& corpus, Communicator& world);
  // The same for the model that `maker`, which outlives this, makes of spec.model.
  Trainer(const RunSpec& spec, const data::Corpus& corpus, Communicator& world, const nn::ModelMaker& maker);
  ~Trainer();

  // Forward, backward, sync, clip, update. Before the update all ranks know whether the step is a spike
  // (spike_watch.h). As train.on_spike says, it throws RunError on all of them; or costs the update, and the samples
  // count as seen; or the report has the spike and neither step nor samples count: the caller goes back. In float16
  // gradients that are not finite cost the update and half the loss scale. Throws CommError too.
  StepReport step();

  // The batch that the next step is made with, counted from the run's first. Other than num_steps() once the run has
  // gone back: `batch`, not before next_batch(), is where it goes on. Travels with the checkpoint.
  int64_t next_batch() const { return num_steps_ + passed_over_; }
  void go_on_at(int64_t batch);

  // Compares what this rank holds copies of with the other ranks' (replica_check.h). Throws RunError on all ranks where
  // they differ. False, and nothing is compared, while replicas are apart as they should be.
  bool check_replicas();

  // Mean loss over train.eval_sequences sequences of the validation part, in nats per token; NaN when nothing is held
  // out. Which sequences they are depends on the data alone, so runs of any seed, batch and mesh compare.
  // Throws RunError when it is not finite.
  double evaluate();
  // The evaluation of this step is due and not made yet. Travels with the checkpoint, so after load() it says how
  // things were at the save; evaluate() makes up for it.
  bool owes_evaluation = false;
  // When each action of the last step ran, one row per world rank; the same on all ranks. Seconds since the step began.
  schedule::Timeline timeline() const;

  // Parameters and the optimizer's states; the number of steps done, the data cursor and what the data are travel in
  // the manifest, the tokenizer's files beside it. Both throw IoError and CommError. save() throws RunError when a
  // parameter is not finite, with nothing published. load() throws ConfigError when the spec does not go on with what
  // was saved (resume.h), before any weight changes; after an IoError, the same on all ranks, of a byte that was
  // changed or could not be read, this trainer is not used any more.
  void save(const std::string& directory, const std::string& config_toml);
  // The same by another way of writing, which `write` is: called with what a checkpoint of now holds, valid until it
  // returns, and not looked at yet for values that are not finite.
  void save(const std::string& config_toml, const std::function<void(const ckpt::CheckpointContent&)>& write);
  // Returns the plan of all saves of this run.
  ckpt::SavePlan save_plan();
  void load(const std::string& directory);

  // Why the step is not replayed from recorded graphs although it could be; empty when it is, or will be, or never was
  // to.
  std::string graph_failure() const;

  // Returns the automatic choices since the last call, from measurements or because a checkpoint lacks something.
  std::vector<std::string> take_choices() { return std::exchange(choices_, {}); }

  int64_t num_steps() const { return num_steps_; }
  RankModel& model() { return *model_; }
  const RankGroups& groups() const { return *groups_; }

 private:
  struct Pass;  // a schedule with what runs it

  std::vector<double> told(const Pass& pass, const Communicator& ranks, const std::vector<double>& own) const;
  RankReport own_numbers() const;
  double loss_scale() const;
  double loss_weight() const;
  double learning_rate() const;
  StepParts step_parts();
  void run_program();
  void begin_gradients(int update);
  void update_within_step(int update);
  void load_counters(const ckpt::CheckpointInfo& info);
  void refuse_if_not_finite();
  param::MemoryUse memory() const;
  std::vector<ckpt::PlacedTensor> tensors();

  RunSpec spec_;
  const data::CorpusOrigin& origin_;
  std::unique_ptr<RankGroups> groups_;
  std::unique_ptr<RankModel> model_;
  std::unique_ptr<sync::Replication> replication_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::LossScaler> loss_scaler_;  // float16 only
  SpikeWatch spikes_;
  std::unique_ptr<Pass> training_, evaluation_;
  std::vector<schedule::Span> spans_;  // of the last step
  std::vector<std::string> choices_;   // not told yet
  int64_t num_steps_ = 0, passed_over_ = 0;
};

// Returns true if the microbatches of a run under `schedule` are recorded as CUDA graphs.
bool records_graphs(const RunSpec& spec, const Schedule& schedule);

}  // namespace braid::train
