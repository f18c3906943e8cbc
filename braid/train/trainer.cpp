// The training step, written once for all layouts.
#include "braid/train/trainer.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/optim/lr_schedule.h"
#include "braid/param/memory_account.h"
#include "braid/schedule/passes.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/early_updates.h"
#include "braid/spec/recompute.h"
#include "braid/spec/run_spec.h"
#include "braid/train/compute_device.h"
#include "braid/train/initial_weights.h"
#include "braid/train/replica_check.h"
#include "braid/train/run_replication.h"
#include "braid/train/step_schedule.h"
#include "braid/train/timeline_exchange.h"

namespace braid::train {

struct Trainer::Pass {
  Pass(const Trainer& trainer, const data::Corpus& corpus, Schedule the_schedule, ExecutorMode mode)
      : batches(trainer.spec_,
                mode == ExecutorMode::Training
                    ? SampleSource{corpus.train, training_order(trainer.spec_.train), corpus.mask_tokens}
                    : SampleSource{corpus.validation, evaluation_order(), corpus.mask_tokens},
                *trainer.groups_),
        schedule(std::move(the_schedule)),
        versions(version_plan(trainer.spec_, schedule)),
        executor(trainer.spec_, *trainer.model_, batches, {mode, versions, trainer.spec_.train.eval_sequences}),
        runtime(schedule, trainer.groups_->over({mesh::Axis::Pipe}), executor) {}

  BatchSource batches;
  Schedule schedule;
  schedule::VersionPlan versions;
  BlockExecutor executor;
  pipe::ScheduleRuntime runtime;
};

// Returns true if microbatches are recorded as graphs (train.cuda_graph). These settings exclude it:
//   attention within documents   documents decide shapes
//   a reproducible sum           each microbatch has a place of its own in the sum
//   recompute                    recording it was never tried
//   several stages or versions   a recording is of a whole model, whose weights stay at their addresses
bool records_graphs(const RunSpec& spec, const Schedule& schedule) {
  return spec.train.device == DeviceKind::Cuda && spec.train.cuda_graph == GraphUse::Auto &&
         spec.train.reduction == Reduction::Fast && spec.data.attention == AttentionMask::Causal &&
         spec.data.sequences == SequenceCut::Packed && spec::stage_recompute(spec.memory, 0) == spec::Recompute{} &&
         schedule.num_stages == 1 && !version_plan(spec, schedule).asynchronous();
}

Trainer::Trainer(const RunSpec& spec, const data::Corpus& corpus, const RunWorld& world)
    : Trainer(spec, corpus, world, nn::model_maker(spec.model)) {}

Trainer::Trainer(const RunSpec& spec, const data::Corpus& corpus, const RunWorld& world, const nn::ModelMaker& maker)
    : spec_(spec::with_parts(spec)), origin_(corpus.origin), spikes_(spec.train.spike_threshold) {
  const mesh::DeviceMesh mesh(spec_.mesh);
  const Schedule schedule = step_schedule(spec_, mesh.coords(world.mesh.rank())[mesh::Axis::Data]);
  groups_ =
      std::make_unique<Groups>(mesh, StageLayout(schedule), world.mesh, spec::num_shards(spec_), spec_.train.reduction);
  model_ = std::make_unique<RankModel>(spec_, *groups_, maker);
  on_disk_ = std::make_unique<DiskRecord>(*model_);
  if (!spec_.train.init.empty()) take_initial_weights(spec_, model_->params());
  if (spec::replicas_run_apart(spec_)) groups_->step_report = &groups_->model();
  replication_ = run_replication(spec_, *model_, world.with_servers);
  if (world.roster) {
    losses_ = std::make_unique<LostWorkers>(*world.roster, *replication_->push_counts(), groups_->at[mesh::Axis::Data],
                                            spec_.mesh.data);
  }
  replication_->on_choice = [this](const std::string& choice) { choices_.push_back(choice); };
  overlap_ = std::make_unique<TensorOverlap>(spec_.mesh, schedule, *model_);
  const param::MemoryScope scope(param::MemoryCategory::Optimizer);
  optimizer_ =
      optim::make_optimizer(spec_.optimizer, model_->params(), groups_->shards(), &groups_->over({mesh::Axis::Tensor}));
  if (spec_.train.dtype == DType::Float16) loss_scaler_ = std::make_unique<optim::LossScaler>(spec_.train.loss_scale);
  // Each rank has read the weights that it owns. If a copy is sharded, the rank receives the other ranks' weights here.
  if (!spec_.train.init.empty() && spec_.sync.zero > 0) replication_->updated();
  training_ = std::make_unique<Pass>(*this, corpus, schedule, ExecutorMode::Training);
  if (!corpus.validation.empty()) {
    evaluation_ = std::make_unique<Pass>(*this, corpus, schedule::forward_only(schedule, schedule.num_microbatches),
                                         ExecutorMode::Evaluation);
  }
  for (const std::string& note : model_->disk_notes()) choices_.push_back(note);
  if (spec::updates_early(spec_) && model_->params().disk()) {
    early_update_ = std::make_unique<EarlyUpdate>(*model_, *replication_, *optimizer_, spec_.optimizer.clip_norm);
    model_->sink().on_ready = [this, report = model_->sink().on_ready](const param::Parameter& param) {
      report(param);
      early_update_->ready(param);
    };
  }
  training_->executor.on_update = [this](int update) { update_within_step(update); };
  training_->executor.on_reduce = [this] { replication_->flush(); };
  bytes_across_hosts_ = groups_->world.bytes_across_hosts();
  const bool hands_in = !model_->auxiliaries().empty();  // a replay runs no block, so none could contribute one
  if (records_graphs(spec_, schedule) && !hands_in) training_->executor.record_with(device::cuda_graph);
}

Trainer::~Trainer() = default;

std::string Trainer::graph_failure() const {
  const RecordedMicrobatches* recorded = training_->executor.recorded();
  return recorded ? recorded->failure() : "";
}

StepParts Trainer::step_parts() {
  const bool within = training_->versions.asynchronous();
  const bool compares =
      spec_.train.check == NormCheck::EveryStep || (spec_.train.check == NormCheck::FirstStep && !norm_is_checked_);
  return {*model_,
          *optimizer_,
          *replication_,
          *replication_,
          loss_scaler_.get(),
          spikes_,
          spec_.train.on_spike,
          spec_.optimizer.clip_norm,
          within                                      ? UpdateTime::WithinTheStep
          : early_update_ && !spec::speculates(spec_) ? UpdateTime::DuringBackward
                                                      : UpdateTime::AtTheEnd,
          compares ? NormUse::Compare : NormUse::Trust,
          spec::first_microbatches(spec_)};
}

namespace {

param::MemoryUse memory_of_server(int64_t peak_bytes) {
  param::MemoryUse use;
  use.peak_bytes[static_cast<size_t>(param::MemoryCategory::Servers)] = peak_bytes;
  use.peak_total_bytes = peak_bytes;
  return use;
}

}  // namespace

StepReport Trainer::step() {
  const double begin = now_seconds();
  const int64_t bytes_before = replication_->bytes_sent();
  const double waited_before = replication_->times().waiting_seconds;
  const bool measures = replication_->measures_steps();  // two choices are not made from the same steps
  if (param::DiskTensors* const on_disk = model_->params().disk()) on_disk->begin_checks();
  on_disk_->begin();
  run_program(next_batch());
  StepReport report;
  report.step = num_steps_ + 1;
  report.learning_rate = learning_rate(num_steps_);
  finish_step(step_parts(), own_numbers(), report);
  if (early_update_) early_update_->end(report.grad_norm);
  norm_is_checked_ = norm_is_checked_ || std::isfinite(report.grad_norm);
  if (losses_) {
    for (const int lost : losses_->read_here(num_steps_)) train_on_share({num_steps_, lost});
  }
  report.seconds = now_seconds() - begin;
  if (!measures) choose_overlap(report.seconds);
  report.tokens_per_second = static_cast<double>(int64_t{spec_.train.batch} * spec_.model.context) / report.seconds;
  if (losses_) report.tokens_per_second *= losses_->steps_at_rate_of(num_steps_);
  report.sync_bytes = replication_->bytes_sent() - bytes_before;
  report.disk_bytes = on_disk_->end();
  const int64_t across_hosts = groups_->world.bytes_across_hosts();
  report.bytes_across_hosts = across_hosts - std::exchange(bytes_across_hosts_, across_hosts);
  const sync::ReplicationTimes times = replication_->times();
  report.server_wait_seconds = times.waiting_seconds - waited_before;
  report.staleness = std::max(training_->versions.most_stale(), static_cast<int>(times.staleness));
  for (const int64_t bytes : times.server_bytes) report.memory.push_back(memory_of_server(bytes));
  if (report.spike.empty() || report.skipped) ++num_steps_;
  return report;
}

// The report of this share is dropped, since the metrics are those of rank 0's own samples.
void Trainer::train_on_share(const SampleShare& share) {
  training_->batches.read_for(share.data_rank);
  run_program(share.step + passed_over_);
  StepReport report;
  report.step = share.step + 1;
  report.learning_rate = learning_rate(share.step);
  finish_step(step_parts(), own_numbers(), report);
  training_->batches.read_for(groups_->at[mesh::Axis::Data]);
}

void Trainer::go_on_at(int64_t batch) {
  check(batch >= next_batch(), "no batch is trained on twice");
  passed_over_ = batch - num_steps_;
}

bool Trainer::check_replicas() {
  if (replication_->replicas() == sync::Replicas::Apart) return false;
  const auto held = copies_held(*model_, *optimizer_, *replication_);
  const std::string fault = differing_copies(held, groups_->world, model_->order());
  if (!fault.empty()) throw RunError(cat("after step ", num_steps_, ", ", fault));
  return true;
}

void Trainer::run_program(int64_t batch) {
  replication_->begin_step(num_steps_);
  training_->executor.begin_step(batch, loss_weight());
  begin_gradients(0);
  if (early_update_) early_update_->begin({learning_rate(num_steps_), 1 / (loss_scaler_ ? loss_scaler_->scale() : 1)});
  spans_ = training_->runtime.run_step();
  if (!training_->versions.asynchronous()) replication_->finish();
}

void Trainer::choose_overlap(double step_seconds) {
  if (overlap_->done()) return;
  if (const auto choice = overlap_->step_over(step_seconds)) choices_.push_back(*choice);
}

void Trainer::begin_gradients(int update) {
  const schedule::VersionPlan& versions = training_->versions;
  const int num_microbatches = versions.asynchronous()
                                   ? versions.update_end(update) - versions.update_begin(update)
                                   : groups_->layout.num_microbatches(groups_->at[mesh::Axis::Pipe]);
  model_->sink().begin_step(num_microbatches);
}

// In an asynchronous schedule a stage does not wait for other stages, so it clips by the norm of its own gradients.
void Trainer::update_within_step(int update) {
  replication_->finish();
  const auto counts = [this](const param::Parameter& param) { return model_->counts(param); };
  const double norm =
      optim::global_grad_norm(model_->params(), model_->order(), counts, groups_->over({mesh::Axis::Tensor}));
  if (!std::isfinite(norm)) {
    throw RunError(cat("step ", num_steps_ + 1, ", update ", update + 1, ": the gradient norm of pipeline rank ",
                       groups_->at[mesh::Axis::Pipe], " is ", norm, ": not finite"));
  }
  optimizer_->step({learning_rate(num_steps_), optim::clip_scale(norm, spec_.optimizer.clip_norm)});
  replication_->updated();
  if (update + 1 < training_->versions.num_updates()) begin_gradients(update + 1);
}

// A replica that updates by itself minimises the mean loss over its own microbatches.
double Trainer::loss_weight() const {
  const bool alone = replication_->gradients() == sync::GradientsOf::OwnReplica;
  return alone ? loss_scale() * groups_->mesh.size(mesh::Axis::Data) : loss_scale();
}

double Trainer::learning_rate(int64_t step) const {
  return braid::optim::learning_rate(spec_.optimizer, static_cast<int>(step), spec_.train.steps);
}

// Returns the losses of the samples that this rank reads, by global microbatch.
std::vector<double> Trainer::evaluated_losses(int64_t step) {
  std::vector<double> losses(evaluation_->batches.num_global_microbatches());
  const int own = groups_->at[mesh::Axis::Data];
  for (const int data_rank : losses_ ? losses_->evaluated_here(step) : std::vector<int>{own}) {
    evaluation_->batches.read_for(data_rank);
    evaluation_->executor.begin_step(step);
    evaluation_->runtime.run_step();
    const auto more = placed_by_microbatch(*evaluation_, groups_->world, evaluation_->executor.losses());
    std::ranges::transform(losses, more, losses.begin(), std::plus());
  }
  return losses;
}

double Trainer::evaluate() {
  owes_evaluation = false;
  if (!evaluation_) return std::numeric_limits<double>::quiet_NaN();
  replication_->meet();
  const c10::AutoGradMode no_grad(false);
  double sum = 0;
  const int64_t sequences = spec_.train.eval_sequences;
  for (int64_t step = 0; step * spec_.train.batch < sequences; ++step) {
    sum += total_loss(evaluated_losses(step), groups_->world);
  }
  const double loss = sum / static_cast<double>(sequences);
  if (!std::isfinite(loss)) throw RunError(cat("step ", num_steps_, ": validation loss ", loss, " is not finite"));
  return loss;
}

// Returns one number for each microbatch of all `ranks`: `own` at the places of this rank's microbatches, else 0.
// Tensor ranks have equal numbers, so only the first of them contributes its own.
std::vector<double> Trainer::placed_by_microbatch(const Pass& pass, const Communicator& ranks,
                                                  const std::vector<double>& own) const {
  const bool all = &ranks == &groups_->world;
  std::vector<double> placed(all ? pass.batches.num_global_microbatches() : pass.batches.num_microbatches());
  if (!groups_->speaks()) return placed;
  std::copy(own.begin(), own.end(), placed.begin() + (all ? pass.batches.global_micro(0) : 0));
  return placed;
}

RankReport Trainer::own_numbers() const {
  const Communicator& ranks = *groups_->step_report;
  const BlockExecutor& executor = training_->executor;
  RankReport own{placed_by_microbatch(*training_, ranks, executor.losses()),
                 busy_row(spans_, memory_held(groups_->mesh.rank(groups_->at), model_->params(), *optimizer_)), 0,
                 executor.auxiliaries()};
  for (auto& [name, losses] : own.auxiliaries.losses) losses = placed_by_microbatch(*training_, ranks, losses);
  if (groups_->speaks() && groups_->at[mesh::Axis::Context] == 0) own.sample_hash = executor.sample_hash();
  return own;
}

}  // namespace braid::train
