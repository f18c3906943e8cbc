// Reports gradients during backward, and adds autograd nodes around layers whose parameters are gathered.
#include "braid/module/model_replica.h"

#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
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
  held_.resize(static_cast<size_t>(layers_.size()));
  begin_step();
}

// Without sharded gradients, gradients accumulate in place, in views of the flat buffer.
void ModelReplica::begin_step() {
  if (!synced_->sink()) synced_->store().flat_grads().zero_();
  kind_ = Backward::OfMany;
  finished_ = false;
  replication().begin_step(num_steps_);
  num_backwards_ = 0;
  begin_microbatch();
}

// Is called before any forward, because the caller may run the modules without forward(). With one backward per step
// the numbers are those of a pipeline with one microbatch.
void ModelReplica::begin_microbatch() {
  const int64_t micro = num_backwards_ * world_.size() + world_.rank();
  listeners_.begin_microbatch({ForwardPurpose::Training, num_steps_, micro});
}

void ModelReplica::bind_accumulators() {
  if (!synced_->sink()) return synced_->accumulate_in_store();
  for (const at::Tensor& parameter : synced_->modules().parameters()) parameter.mutable_grad().reset();
}

void ModelReplica::arrived(const param::Parameter& param) {
  if (seen_.empty()) {
    throw ConfigError(
        {{"backward", "of the loss", "must be that of the model, which knows the step: backward(loss)", ""}});
  }
  if (synced_->sink()) {
    at::Tensor& gradient = synced_->modules().parameters()[param.index].mutable_grad();
    write(param, gradient);
    gradient.reset();
  } else if (kind_ == Backward::Last) {
    replication().ready(param);
  }
  seen_[param.index] = true;
}

// Autograd calls a hook once for all uses of a parameter. Every use is opened and closed, and the gradient is written
// where beta is 0.
void ModelReplica::write(const param::Parameter& param, const at::Tensor& gradient) {
  for (const int use : param.local_uses) {
    const param::GradSlot slot = synced_->sink()->open(param, use, 0);
    if (slot.beta == 0) gradient.defined() ? slot.target.copy_(gradient) : slot.target.zero_();
    synced_->sink()->close(param, use, 0);
  }
}

void ModelReplica::backward(const at::Tensor& loss, double seed, Backward kind) {
  synced_->require_followed(layers_);
  kind_ = kind;
  bind_accumulators();
  seen_.assign(synced_->modules().parameters().size(), false);
  if (synced_->sink()) synced_->sink()->begin_step(1);
  loss.backward(at::full_like(loss, seed));
  for (size_t layer = 0; layer < held_.size(); ++layer) {
    while (held_[layer] > 0) release_backward(static_cast<int>(layer));
  }
  if (synced_->sink() || kind == Backward::Last) add_what_is_missing();
  seen_.clear();
  ++num_backwards_;
  begin_microbatch();
}

// Reports the gradients of parameters on which the loss did not depend.
void ModelReplica::add_what_is_missing() {
  const c10::AutoGradMode no_grad(false);
  for (const param::Parameter& param : synced_->store().params()) {
    if (!seen_[param.index]) arrived(param);
  }
}

void ModelReplica::finish() {
  const c10::AutoGradMode no_grad(false);
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
  synced_->require_followed(layers_);
  synced_->follow();
  frozen_.follow(world_);
}

void ModelReplica::go_on_after(int64_t steps) {
  const c10::AutoGradMode no_grad(false);
  synced_->modules().note_update();
  num_steps_ = steps;
  begin_step();
}

void ModelReplica::with_whole_parameters(const std::function<void()>& body) {
  const WholeModel whole(layers_, synced_.get(), world_);
  body();
}

Tensors ModelReplica::forward(Tensors tensors) {
  for (int layer = 0; layer < layers_.size(); ++layer) tensors = run(layer, std::move(tensors));
  return tensors;
}

Tensors ModelReplica::run(int layer, Tensors tensors) {
  const bool shares = world_.size() > 1 && world_.rank_kind() == RankKind::Thread;
  const LayerContext context{cat("layer ", layers_[layer].name),
                             shares ? ProcessGenerator::Shared : ProcessGenerator::Own};
  if (!synced_->store().shards_parameters()) return run_layer(layers_[layer], tensors, context);
  using Call = void (ModelReplica::*)(int);
  const auto edge = [this, layer](const Tensors& at, Call call) {
    if (!c10::GradMode::is_enabled()) return at;
    const std::function<void()> bound = [this, layer, call] { (this->*call)(layer); };
    return with_call_in_backward(at, std::make_shared<const std::function<void()>>(bound));
  };
  const WholeLayer whole(replication(), layer);
  tensors = edge(tensors, &ModelReplica::release_backward);
  return edge(run_layer(layers_[layer], tensors, context), &ModelReplica::acquire_backward);
}

// With create_graph autograd would go through the graph of the backward after the parameters are released.
void ModelReplica::acquire_backward(int layer) {
  if (c10::GradMode::is_enabled()) {
    throw ConfigError(
        {{"sync.zero", "3", "has no second backward (create_graph): parameters are gathered for one", "2"}});
  }
  replication().acquire(layer, param::Phase::Backward);
  ++held_[static_cast<size_t>(layer)];
}

void ModelReplica::release_backward(int layer) {
  if (held_[static_cast<size_t>(layer)] == 0) return;
  --held_[static_cast<size_t>(layer)];
  replication().release(layer, param::Phase::Backward);
}

}  // namespace braid::modules
