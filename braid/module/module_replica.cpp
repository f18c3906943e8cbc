// Hooks on gradients, and edges in the graph around layers whose parameters are gathered.
#include "braid/module/module_replica.h"

#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <utility>

#include "braid/base/errors.h"
#include "braid/module/gather_edges.h"
#include "braid/module/layer_facts.h"
#include "braid/sync/make_replication.h"

namespace braid {
namespace {

struct GradientHook final : torch::autograd::PostAccumulateGradHook {
  explicit GradientHook(std::function<void()> the_call) : call(std::move(the_call)) {}
  void operator()(const at::Tensor&) override { call(); }
  std::function<void()> call;
};

void broadcast_values(const LayerList& layers, Communicator& world) {
  const c10::AutoGradMode no_grad(false);
  for (int l = 0; world.size() > 1 && l < layers.size(); ++l) {
    for (const Tensors& tensors : {parameters(layers[l]), buffers(layers[l])}) {
      for (const at::Tensor& tensor : tensors) {
        const at::Tensor whole = tensor.detach().contiguous();
        world.broadcast(whole, 0).wait_host();
        if (!tensor.is_contiguous()) tensor.detach().copy_(whole);
      }
    }
  }
}

int num_parts(const SyncSpec& sync, const Communicator& world) {
  if (sync.zero == 0) return 1;
  return sync.zero_group > 0 ? sync.zero_group : world.size();
}

}  // namespace

ModuleReplica::ModuleReplica(LayerList layers, Communicator& world, const Specs& specs) : layers_(std::move(layers)) {
  const int parts = num_parts(specs.sync, world);
  shards_ = world.split(world.rank() / parts, world.rank(), "shards");
  copies_ = world.split(world.rank() % parts, world.rank(), "copies");
  alone_ = world.split(world.rank(), 0, "alone");
  broadcast_values(layers_, world);
  const Sharding shared_out{static_cast<Sharded>(specs.sync.zero), shards_->rank(), parts};
  modules_ = std::make_unique<ModuleStore>(layers_, parts == 1 ? Sharding{} : shared_out);
  ParamStore& store = modules_->store();
  if (store.shards_gradients()) sink_ = std::make_unique<UnitSink>(store);
  replication_ = make_replication(specs.sync, {world, *shards_, *copies_, *alone_},
                                  {.store = store,
                                   .unit_sink = sink_.get(),
                                   .stage_of_block = std::vector<int>(static_cast<size_t>(layers_.size()), 0),
                                   .optimizer = specs.optimizer});
  held_.resize(static_cast<size_t>(layers_.size()));
  add_hooks();
  begin_step();
}

ModuleReplica::~ModuleReplica() {
  for (const at::Tensor& parameter : modules_->parameters()) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
  }
}

void ModuleReplica::add_hooks() {
  for (const Parameter& param : modules_->store().params()) {
    torch::autograd::impl::set_post_acc_grad_hooks(modules_->parameters()[param.index],
                                                   std::make_unique<GradientHook>([this, &param] { arrived(param); }));
  }
}

// Gradients that are whole are accumulated in place, in views of the flat buffer.
void ModuleReplica::begin_step() {
  if (!sink_) modules_->store().flat_grads().zero_();
  kind_ = Backward::OfMany;
  finished_ = false;
  replication_->begin_step(num_steps_);
}

void ModuleReplica::bind_accumulators() {
  for (const Parameter& param : modules_->store().params()) {
    at::Tensor& gradient = modules_->parameters()[param.index].mutable_grad();
    if (sink_) {
      gradient.reset();
    } else {
      gradient = param.main_grad;
    }
  }
}

void ModuleReplica::arrived(const Parameter& param) {
  if (sink_) {
    at::Tensor& gradient = modules_->parameters()[param.index].mutable_grad();
    write(param, gradient);
    gradient.reset();
  } else if (kind_ == Backward::Last) {
    replication_->ready(param);
  }
  seen_[param.index] = true;
}

// A hook is called once for all uses.
void ModuleReplica::write(const Parameter& param, const at::Tensor& gradient) {
  for (const int use : param.local_uses) {
    const GradSlot slot = sink_->open(param, use, 0);
    if (slot.beta == 0) gradient.defined() ? slot.target.copy_(gradient) : slot.target.zero_();
    sink_->close(param, use, 0);
  }
}

void ModuleReplica::backward(const at::Tensor& loss, double seed, Backward kind) {
  kind_ = kind;
  bind_accumulators();
  seen_.assign(modules_->parameters().size(), false);
  if (sink_) sink_->begin_step(1);
  loss.backward(at::full_like(loss, seed));
  for (size_t layer = 0; layer < held_.size(); ++layer) {
    while (held_[layer] > 0) release_backward(static_cast<int>(layer));
  }
  if (sink_ || kind == Backward::Last) add_what_is_missing();
}

// Whatever the loss did not depend on.
void ModuleReplica::add_what_is_missing() {
  const c10::AutoGradMode no_grad(false);
  for (const Parameter& param : modules_->store().params()) {
    if (!seen_[param.index]) arrived(param);
  }
}

void ModuleReplica::finish() {
  if (finished_) return;
  const c10::AutoGradMode no_grad(false);
  replication_->finish();
  finished_ = true;
  modules_->bind_gradients();
}

void ModuleReplica::updated() {
  const c10::AutoGradMode no_grad(false);
  replication_->updated();
  modules_->note_update();
  ++num_steps_;
  begin_step();
}

Tensors ModuleReplica::forward(Tensors tensors) {
  for (int layer = 0; layer < layers_.size(); ++layer) tensors = run(layer, std::move(tensors));
  return tensors;
}

Tensors ModuleReplica::run(int layer, Tensors tensors) {
  if (!modules_->store().shards_parameters()) return layers_[layer].forward(tensors);
  using Call = void (ModuleReplica::*)(int);
  const auto edge = [this, layer](const Tensors& at, Call call) {
    if (!c10::GradMode::is_enabled()) return at;
    const std::function<void()> bound = [this, layer, call] { (this->*call)(layer); };
    return with_call_in_backward(at, std::make_shared<const std::function<void()>>(bound));
  };
  replication_->acquire(layer, Phase::Forward);
  tensors = edge(tensors, &ModuleReplica::release_backward);
  tensors = edge(layers_[layer].forward(tensors), &ModuleReplica::acquire_backward);
  replication_->release(layer, Phase::Forward);
  return tensors;
}

void ModuleReplica::acquire_backward(int layer) {
  replication_->acquire(layer, Phase::Backward);
  ++held_[static_cast<size_t>(layer)];
}

void ModuleReplica::release_backward(int layer) {
  if (held_[static_cast<size_t>(layer)] == 0) return;
  --held_[static_cast<size_t>(layer)];
  replication_->release(layer, Phase::Backward);
}

}  // namespace braid
