// Reports gradients during backward.
#include "braid/module/model_replica.h"

#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/layer_facts.h"
#include "braid/module/model_part.h"
#include "braid/module/recomputed_layer.h"
#include "braid/module/synced_modules.h"

namespace braid::modules {
ModelReplica::ModelReplica(LayerList layers, Communicator& world, const SyncedModules::Specs& specs, int64_t first_step)
    : layers_(std::move(layers)),
      world_(world),
      alone_(world.split(world.rank(), 0, "alone")),
      listeners_(layers_, 0, layers_.size()),
      frozen_(layers_),
      num_steps_(first_step) {
  broadcast_values(layers_, world);
  synced_ = std::make_unique<SyncedModules>(layers_, world, specs);
  synced_->on_gradient = [this](const param::Parameter& param) { arrived(param); };
  if (synced_->store().shards_parameters()) {
    gathered_ = std::make_shared<GatheredLayers>(replication(), layers_.size());
    gathered_->on_done_from = [this](int layer) {
      if (moving_) moving_->end_from(layer);
    };
  }
  for (const param::Parameter& param : synced_->store().params()) uses_[param.index] = param.local_uses;
  begin_step();
}

// Without sharded gradients, gradients accumulate in place, in views of the flat buffer.
void ModelReplica::begin_step() {
  if (!synced_->sink()) synced_->store().flat_grads().zero_();
  kind_ = Backward::OfMany;
  finished_ = false;
  replication().begin_step(num_steps_);
  num_backwards_ = 0;
  if (gathered_) gathered_->forget_forwards();
  begin_microbatch();
}

// Is called before any forward, because the caller may run the modules without forward(). With one backward per step
// the numbers are those of a pipeline with one microbatch.
void ModelReplica::begin_microbatch() {
  const int64_t micro = num_backwards_ * world_.size() + world_.rank();
  listeners_.begin_microbatch({ForwardPurpose::Training, num_steps_, micro});
}

void ModelReplica::bind_accumulators() {
  synced_->sink() ? synced_->reset_gradients() : synced_->accumulate_in_store();
}

void ModelReplica::arrived(const param::Parameter& param) {
  if (seen_.empty()) {
    throw ConfigError(
        {{"backward", "of the loss", "must be that of the model, which knows the step: backward(loss)", ""}});
  }
  if (synced_->sink()) {
    moving_->arrived(param);
  } else if (kind_ == Backward::Last) {
    replication().ready(param);
  }
  seen_[param.index] = true;
}

void ModelReplica::backward(const at::Tensor& loss, double seed, Backward kind) {
  synced_->require_followed(layers_);
  kind_ = kind;
  bind_accumulators();
  seen_.assign(synced_->modules().parameters().size(), false);
  if (synced_->sink()) {
    synced_->sink()->begin_step(1);
    moving_.emplace(*synced_, layers_.size(), uses_, 0);
  }
  complete_ = false;
  if (gathered_) gathered_->begin_backward();
  try {
    loss.backward(at::full_like(loss, seed));
  } catch (...) {
    if (gathered_) gathered_->give_up();
    throw;
  }
  end_backward();
  seen_.clear();
  complete_ = true;
  ++num_backwards_;
  begin_microbatch();
}

void ModelReplica::end_backward() {
  const c10::AutoGradMode no_grad(false);
  if (gathered_) gathered_->end_backward();
  if (!synced_->sink() && kind_ == Backward::Last) add_what_is_missing();
  if (moving_) moving_->end();
  moving_.reset();
}

void ModelReplica::require_complete() const {
  if (complete_) return;
  throw RunError(
      "a backward of these modules has failed, so the step's gradients are incomplete: save or load, and "
      "construct the DataParallel or ModulePipeline again");
}

// Reports the gradients of parameters on which the loss did not depend.
void ModelReplica::add_what_is_missing() {
  for (const param::Parameter& param : synced_->store().params()) {
    if (!seen_[param.index]) arrived(param);
  }
}

void ModelReplica::finish() {
  const c10::AutoGradMode no_grad(false);
  if (gathered_) gathered_->give_up();
  if (!std::exchange(finished_, true)) {
    replication().finish();
    synced_->modules().bind_gradients();
  }
  synced_->follow();
  frozen_.follow(world_);
}

void ModelReplica::updated() {
  const c10::AutoGradMode no_grad(false);
  replication().updated();
  synced_->modules().note_update();
  const bool alike = replication().replicas() == sync::Replicas::Alike;
  listeners_.end_step(alike ? world_ : *alone_);  // independent replicas do not wait for each other
  if (alike) broadcast_buffers(layers_, world_);
  ++num_steps_;
  begin_step();
}

void ModelReplica::follow() {
  const c10::AutoGradMode no_grad(false);
  if (gathered_) gathered_->give_up();
  synced_->require_followed(layers_);
  synced_->follow();
  frozen_.follow(world_);
}

void ModelReplica::resume_after(int64_t steps) {
  const c10::AutoGradMode no_grad(false);
  synced_->modules().note_written();
  synced_->modules().note_update();
  num_steps_ = steps;
  begin_step();
}

void ModelReplica::with_whole_parameters(const std::function<void()>& body) {
  const WholeModel whole(layers_, synced_.get(), world_);
  body();
}

Tensors ModelReplica::forward(Tensors tensors) {
  if (gathered_ && c10::GradMode::is_enabled()) gathered_->begin_forward();
  for (int layer = 0; layer < layers_.size(); ++layer) tensors = run(layer, std::move(tensors));
  return tensors;
}

Tensors ModelReplica::run(int layer, Tensors tensors) {
  const bool shares = world_.size() > 1 && world_.rank_kind() == RankKind::Thread;
  const LayerContext context{cat("layer ", layers_[layer].name),
                             shares ? ProcessGenerator::Shared : ProcessGenerator::Own};
  const auto run = [&](const Tensors& inputs) { return run_layer(layers_[layer], inputs, context); };
  return gathered_ ? gathered_->run(layer, tensors, run) : run(tensors);
}

}  // namespace braid::modules
