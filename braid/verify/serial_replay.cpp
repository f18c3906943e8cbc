// Every replica, update and microbatch, one after another.
#include "braid/verify/serial_replay.h"

#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "braid/layout/parameters.h"
#include "braid/optim/grad_norm.h"
#include "braid/optim/lr_schedule.h"
#include "braid/spec/partition.h"
#include "braid/train/initial_weights.h"
#include "braid/train/recorded_microbatches.h"
#include "braid/train/step_schedule.h"
#include "braid/verify/serial_run.h"

namespace braid::verify {
namespace {

std::map<std::string, int> stages_of_params(const RunSpec& run) {
  std::map<std::string, int> stages;
  const layout::ModelParams params = layout::model_params(run.model, 0, 1);
  const std::vector<int> units = spec::stage_units(run, run.mesh.pipe);
  for (int stage = 0; stage < run.mesh.pipe; ++stage) {
    for (const nn::ModelPiece& piece : nn::pieces_of(run.model, units[stage], units[stage + 1])) {
      for (const layout::ParamSpec& param : nn::params_of(piece, params).params) stages[param.name] = stage;
    }
  }
  return stages;
}

at::Tensor gradients_of(const param::ParamStore& store) { return store.flat_grads().narrow(0, 0, store.num_flat()); }

// Adds the gradients of a tied parameter's uses, which reproducible mode keeps apart.
void add_uses(const param::ParamStore& store) {
  for (const param::Parameter& param : store.params()) {
    for (const param::UseGrad& use : param.use_grads) {
      if (use.slice.data_ptr() != param.main_grad.data_ptr()) param.main_grad.add_(use.slice);
    }
  }
}

int microbatches_of_update(const RunSpec& run) {
  return train::version_plan(run, train::step_schedule(run)).update_end(0);
}

}  // namespace

SerialReplay::SerialReplay(const RunSpec& run, const data::Corpus& corpus, Communicator& world,
                           std::span<nn::ValueObserver* const> observers)
    : run_(run),
      serial_(serial_of(run)),
      groups_(mesh::DeviceMesh(serial_.mesh), train::StageLayout::single(), world),
      batches_(serial_, {corpus.train, train::training_order(run.train), corpus.mask_tokens}, groups_) {
  for (nn::ValueObserver* const observer : observers) {
    Replica& replica = replicas_.emplace_back(Replica{nn::model_maker(run.model), nullptr, nullptr});
    replica.maker.observer = observer;
    replica.model = std::make_unique<train::RankModel>(serial_, groups_, replica.maker);
    if (!run.train.init.empty()) train::take_initial_weights(serial_, replica.model->params());
    replica.optimizer = optim::make_optimizer(serial_.optimizer, replica.model->params());
  }
  if (replayed(run) == Replayed::Stages) {
    stage_of_ = stages_of_params(run);
    group_ = microbatches_of_update(run);
  }
  anchor_ = params(0).flat_master().detach().clone();
  momentum_ = at::zeros_like(anchor_);
}

train::StepReport SerialReplay::step() {
  train::StepReport report;
  report.loss = 0;
  replayed(run_) == Replayed::Stages ? step_of_stages(report) : step_of_replicas(report);
  ++step_;
  return report;
}

double SerialReplay::rate() const {
  return optim::learning_rate(run_.optimizer, static_cast<int>(step_), run_.train.steps);
}

void SerialReplay::compute(Replica& replica, const Place& place, train::StepReport& report) {
  nn::Microbatch microbatch = batches_.microbatch(step_, place.of_step);
  report.sample_hash += batches_.hash(step_, place.of_step, microbatch);
  microbatch.micro = place.of_update;
  microbatch.loss_gradient = place.weight;
  const at::Tensor loss = train::compute_microbatch(*replica.model, microbatch);
  report.loss += loss.to(at::kDouble).item<double>() / batches_.num_global_microbatches();
}

// In the first steps all gradients are summed; then each replica follows its own.
void SerialReplay::step_of_replicas(train::StepReport& report) {
  const int replicas = static_cast<int>(replicas_.size()), all = batches_.num_global_microbatches();
  const bool is_summed = step_ < run_.sync.period_warmup;
  for (int r = 0; r < replicas; ++r) {
    const int own = all / replicas;
    replicas_[r].model->sink().begin_step(own);
    for (int i = 0; i < own; ++i) compute(replicas_[r], {r * own + i, i, (is_summed ? 1.0 : replicas) / all}, report);
  }
  const c10::AutoGradMode no_grad(false);
  for (Replica& replica : replicas_) add_uses(replica.model->params());
  if (is_summed) sum_gradients();
  double squares = 0;
  for (Replica& replica : replicas_) {
    const double norm = gradients_of(replica.model->params()).norm().item<double>();
    replica.optimizer->step({rate(), optim::clip_scale(norm, run_.optimizer.clip_norm)});
    squares += norm * norm;
  }
  report.grad_norm = std::sqrt(squares / replicas);
  if (is_summed) anchor_.copy_(params(0).flat_master());
  const int64_t local_steps = step_ + 1 - run_.sync.period_warmup;
  if (!is_summed && (local_steps % run_.sync.period == 0 || step_ + 1 == run_.train.steps)) average();
}

void SerialReplay::sum_gradients() {
  const at::Tensor sum = at::zeros_like(gradients_of(params(0)));
  for (Replica& replica : replicas_) sum.add_(gradients_of(replica.model->params()));
  for (Replica& replica : replicas_) gradients_of(replica.model->params()).copy_(sum);
}

// DiLoCo: torch.optim.SGD with nesterov=True on anchor - mean.
void SerialReplay::average() {
  at::Tensor mean = at::zeros_like(anchor_);
  for (Replica& replica : replicas_) mean.add_(replica.model->params().flat_master());
  mean.div_(static_cast<double>(replicas_.size()));
  if (run_.sync.replication == ReplicationKind::DiLoCo) {
    const at::Tensor gradient = anchor_.sub(mean);
    momentum_ = momentum_.mul(run_.sync.outer_momentum).add(gradient);
    mean = anchor_.sub(gradient.add(momentum_, run_.sync.outer_momentum).mul(run_.sync.outer_lr));
  }
  anchor_ = mean;
  for (Replica& replica : replicas_) {
    replica.model->params().flat_master().copy_(mean);
    replica.model->params().round_masters();
  }
}

// All data ranks make each update together.
void SerialReplay::step_of_stages(train::StepReport& report) {
  Replica& replica = replicas_.front();
  param::ParamStore& store = replica.model->params();
  const int data = run_.mesh.data, per_rank = batches_.num_global_microbatches() / data;
  versions_ = {store.flat_data().detach().clone()};
  for (int begin = 0; begin < per_rank; begin += group_) {
    replica.model->sink().begin_step(group_ * data);
    for (int rank = 0; rank < data; ++rank) {
      for (int i = 0; i < group_; ++i) {
        use_weights_for(begin + i);
        compute(replica, {rank * per_rank + begin + i, rank * group_ + i, 1.0 / (group_ * data)}, report);
      }
    }
    const c10::AutoGradMode no_grad(false);
    store.flat_data().copy_(versions_.back());
    clip_by_stage();
    replica.optimizer->step({rate(), 1});
    versions_.push_back(store.flat_data().detach().clone());
  }
}

// A stage that stashes its weights is as many updates behind as stages follow it; with vertical sync all stages are
// behind as the first is; with two buffers all are one update behind.
int SerialReplay::version(int micro, int stage) const {
  const int stages = run_.mesh.pipe;
  if (run_.pipeline.schedule == "pipedream-2bw") return std::max(0, micro / group_ - 1);
  return std::max(0, micro - (stages - 1 - (run_.pipeline.weights == StageWeights::Own ? stage : 0)));
}

void SerialReplay::use_weights_for(int micro) {
  const c10::AutoGradMode no_grad(false);
  for (const param::Parameter& param : params(0).params()) {
    const at::Tensor& weights = versions_.at(static_cast<size_t>(version(micro, stage_of_.at(param.name))));
    param.data.detach().view({-1}).copy_(weights.narrow(0, param.offset, param.num_elements()));
  }
}

// No stage waits for another one's norm.
void SerialReplay::clip_by_stage() {
  if (run_.optimizer.clip_norm == 0) return;
  std::map<int, double> squares;
  for (const param::Parameter& param : params(0).params()) {
    squares[stage_of_.at(param.name)] += std::pow(param.main_grad.norm().item<double>(), 2);
  }
  for (const param::Parameter& param : params(0).params()) {
    const double norm = std::sqrt(squares.at(stage_of_.at(param.name)));
    param.main_grad.mul_(optim::clip_scale(norm, run_.optimizer.clip_norm));
  }
}

}  // namespace braid::verify
