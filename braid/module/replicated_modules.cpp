// Groups by rank: those that share a copy out are neighbours.
#include "braid/module/replicated_modules.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "braid/module/layer_facts.h"
#include "braid/sync/make_replication.h"

namespace braid {
namespace {

struct GradientHook final : torch::autograd::PostAccumulateGradHook {
  explicit GradientHook(std::function<void()> the_call) : call(std::move(the_call)) {}
  void operator()(const at::Tensor&) override { call(); }
  std::function<void()> call;
};

void broadcast(const Tensors& tensors, Communicator& world) {
  if (world.size() == 1) return;
  const c10::AutoGradMode no_grad(false);
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor whole = tensor.detach().contiguous();
    world.broadcast(whole, 0).wait_host();
    if (!tensor.is_contiguous()) tensor.detach().copy_(whole);
  }
}

int num_parts(const SyncSpec& sync, const Communicator& world) {
  if (sync.zero == 0) return 1;
  return sync.zero_group > 0 ? sync.zero_group : world.size();
}

}  // namespace

void broadcast_values(const LayerList& layers, Communicator& world) {
  for (int l = 0; l < layers.size(); ++l) broadcast(parameters(layers[l]), world);
  broadcast_buffers(layers, world);
}

void broadcast_buffers(const LayerList& layers, Communicator& world) { broadcast(buffers(layers), world); }

ReplicatedModules::ReplicatedModules(const LayerList& layers, Communicator& world, const Specs& specs) {
  const int parts = num_parts(specs.sync, world);
  shards_ = world.split(world.rank() / parts, world.rank(), "shards");
  copies_ = world.split(world.rank() % parts, world.rank(), "copies");
  alone_ = world.split(world.rank(), 0, "alone");
  const Sharding shared_out{static_cast<Sharded>(specs.sync.zero), shards_->rank(), parts};
  modules_ = std::make_unique<ModuleStore>(layers, parts == 1 ? Sharding{} : shared_out);
  if (store().shards_gradients()) sink_ = std::make_unique<UnitSink>(store());
  replication_ = make_replication(specs.sync, {world, *shards_, *copies_, *alone_},
                                  {.store = store(),
                                   .unit_sink = sink_.get(),
                                   .stage_of_block = std::vector<int>(static_cast<size_t>(layers.size()), 0),
                                   .optimizer = specs.optimizer});
  for (const Parameter& param : store().params()) {
    const auto tell = [this, &param] {
      if (on_gradient) on_gradient(param);
    };
    torch::autograd::impl::set_post_acc_grad_hooks(modules_->parameters()[param.index],
                                                   std::make_unique<GradientHook>(tell));
  }
}

ReplicatedModules::~ReplicatedModules() {
  for (const at::Tensor& parameter : modules_->parameters()) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
  }
}

void ReplicatedModules::accumulate_in_store() const {
  for (const Parameter& param : store().params()) modules_->parameters()[param.index].mutable_grad() = param.main_grad;
}

}  // namespace braid
