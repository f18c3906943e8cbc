// One rank of a training run: makes steps, evaluates, saves and loads checkpoints. All ranks of the world call the same
// methods in the same order.
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
#include "braid/train/disk_record.h"
#include "braid/train/early_update.h"
#include "braid/train/lost_workers.h"
#include "braid/train/rank_model.h"
#include "braid/train/run_world.h"
#include "braid/train/step_report.h"
#include "braid/train/step_update.h"
#include "braid/train/tensor_overlap.h"

namespace braid::train {

class Trainer {
 public:
  // `corpus` and the communicators of `world` outlive this. With train.init, loads these weights, and throws IoError
  // and ConfigError. REQUIRES: `spec` has no problems and a resolved vocabulary; the weights of train.init are those of
  // spec.model (initial_weights.h).
  Trainer(const RunSpec& spec, const data::Corpus& corpus, const RunWorld& world);
  // The same for the model that `maker` makes of spec.model. `maker` outlives this.
  Trainer(const RunSpec& spec, const data::Corpus& corpus, const RunWorld& world, const nn::ModelMaker& maker);
  ~Trainer();

  // Makes a step: forward, backward, all-reduce of gradients, clipping, update. Before the update, all ranks agree on
  // whether the step is a spike (spike_watch.h). Then train.on_spike decides:
  //
  //   stop      throws RunError on all ranks
  //   skip      skips the update; the step and its samples count. After SpikeWatch::kMostSkips in a row, as stop.
  //   rollback  returns the spike in the report; neither step nor samples count. The caller must roll back.
  //
  // In float16, gradients that are not finite skip the update and halve the loss scale. Throws CommError too.
  StepReport step();

  // Returns the batch of the next step, counted from the run's first. It is more than num_steps() if the run has
  // skipped batches in a rollback. Saved in checkpoints.
  int64_t next_batch() const { return num_steps_ + passed_over_; }
  // Skips to `batch`. REQUIRES: batch >= next_batch().
  void go_on_at(int64_t batch);

  // Compares copies of parameters and optimizer states with those of other ranks (replica_check.h). Throws RunError on
  // all ranks if copies differ. Returns false, and compares nothing, if replicas are apart, as between two
  // synchronisations.
  bool check_replicas();

  // Returns the mean loss over train.eval_sequences sequences of the validation part, in nats per token; NaN if nothing
  // is held out. The choice of sequences depends only on the data, so runs with any seed, batch and mesh compare.
  // Throws RunError if the loss is not finite.
  double evaluate();
  // True if the evaluation of this step is due and not made yet. Saved in checkpoints, so load() sets it to its value
  // at the save. evaluate() clears it.
  bool owes_evaluation = false;
  // Returns the time of each action and disk transfer of the last step, one row per world rank, in seconds since the
  // first of them began. Returns the same on all ranks. Collective.
  schedule::Timeline timeline() const;

  // Saves a checkpoint of parameters, the optimizer's states and the state of replication. Its manifest has the number
  // of steps, the data cursor and the content marks of the data; the tokenizer's files are beside it. Throws IoError
  // and CommError, and RunError if a parameter is not finite or states on disk are not those that were written; then
  // nothing is published. Collective.
  void save(const std::string& directory, const std::string& config_toml);
  // The same, but `write` writes the checkpoint. `write` is called with the content of a checkpoint, valid until it
  // returns. The content has not been checked for values that are not finite.
  void save(const std::string& config_toml, const std::function<void(const ckpt::CheckpointContent&)>& write);
  // Returns the plan of all saves of this run.
  ckpt::SavePlan save_plan();
  // Loads a checkpoint. Throws ConfigError, before any weight changes, if the spec cannot resume from it (resume.h).
  // Throws CommError, and throws IoError on all ranks if a byte was changed or cannot be read; after that this trainer
  // must not be used any more. Collective.
  void load(const std::string& directory);

  // Returns the reason if recording CUDA graphs has failed; else "".
  std::string graph_failure() const;

  // Returns the automatic choices since the last call. Their reasons are measurements, or a checkpoint that lacks
  // something.
  std::vector<std::string> take_choices() { return std::exchange(choices_, {}); }

  // From here on the run goes on without workers that are lost, if RunWorld has a roster. Collective.
  void begin_losses();
  // Called on all workers that are there when a call has thrown comm::MembersLost. Makes up for the shares of samples
  // of the lost workers in earlier steps; step() does so from here on. The call may then be made again. Collective.
  void take_over();
  // Returns the workers whose loss was noticed since the last call.
  std::vector<LostWorker> take_lost() { return losses_ ? losses_->take_lost() : std::vector<LostWorker>(); }

  // Returns the strongest request of servers' ranks that this rank has received since the last call.
  sync::RunRequest take_request() { return replication_->take_request(); }

  int64_t num_steps() const { return num_steps_; }
  RankModel& model() { return *model_; }
  DiskRecord& on_disk() { return *on_disk_; }  // of the last step
  const Groups& groups() const { return *groups_; }

 private:
  struct Pass;  // a schedule, its batches and its executor

  std::vector<double> placed_by_microbatch(const Pass& pass, const Communicator& ranks,
                                           const std::vector<double>& own) const;
  std::vector<double> evaluated_losses(int64_t step);
  RankReport own_numbers() const;
  double loss_scale() const { return loss_scaler_ ? loss_scaler_->scale() : 1; }
  double loss_weight() const;
  double learning_rate(int64_t step) const;
  StepParts step_parts();
  void run_program(int64_t batch);
  void choose_overlap(double step_seconds);
  void train_on_share(const SampleShare& share);
  void begin_gradients(int update);
  void update_within_step(int update);
  void load_counters(const ckpt::CheckpointInfo& info);
  void refuse_if_not_finite();
  std::vector<ckpt::PlacedTensor> tensors();

  RunSpec spec_;
  const data::CorpusOrigin& origin_;
  std::unique_ptr<Groups> groups_;
  std::unique_ptr<RankModel> model_;
  std::unique_ptr<DiskRecord> on_disk_;
  std::unique_ptr<sync::Replication> replication_;
  std::unique_ptr<TensorOverlap> overlap_;
  std::unique_ptr<LostWorkers> losses_;  // null: a lost rank fails the world
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::LossScaler> loss_scaler_;  // float16 only
  std::unique_ptr<EarlyUpdate> early_update_;       // null: updates are made at the end of steps
  SpikeWatch spikes_;
  std::unique_ptr<Pass> training_, evaluation_;
  std::vector<schedule::Span> spans_;  // of the last step
  std::vector<std::string> choices_;   // since the last take_choices()
  int64_t bytes_across_hosts_ = 0;     // of the world, until the end of the last step
  int64_t num_steps_ = 0, passed_over_ = 0;
  bool norm_is_checked_ = false;  // a finite gradient norm was compared (train.check)
};

// Returns true if the microbatches of a run under `schedule` are recorded as CUDA graphs.
bool records_graphs(const RunSpec& spec, const Schedule& schedule);

}  // namespace braid::train
