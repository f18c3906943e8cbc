// Splits ranks into groups by their number: the ranks over which one copy is sharded are neighbours.
#include "braid/module/synced_modules.h"

#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/comm/op_name.h"
#include "braid/module/layer_facts.h"
#include "braid/module/module_changes.h"
#include "braid/spec/run_spec.h"
#include "braid/sync/make_replication.h"

namespace braid::modules {

namespace {

struct GradientHook final : torch::autograd::PostAccumulateGradHook {
  GradientHook(const SyncedModules* the_owner, std::function<void()> the_call)
      : owner(the_owner), call(std::move(the_call)) {}
  void operator()(const at::Tensor&) override { call(); }
  const SyncedModules* owner;
  std::function<void()> call;
};

void broadcast(const Tensors& tensors, Communicator& world) {
  if (world.size() == 1) return;
  const c10::AutoGradMode no_grad(false);
  const comm::CallName name("parameters and buffers of modules");
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor whole = tensor.detach().contiguous();
    world.broadcast(whole, 0).wait_host();
    if (!tensor.is_contiguous()) tensor.detach().copy_(whole);
  }
}

// Collective. Throws ConfigError if ranks that are threads have the same parameters.
void require_distinct_parameters(const LayerList& layers, Communicator& world) {
  if (world.rank_kind() != RankKind::Thread || world.size() == 1) return;
  std::vector<std::vector<int64_t>> addresses(static_cast<size_t>(layers.size()));  // of parameters, by layer
  for (int l = 0; l < layers.size(); ++l) {
    for (const at::Tensor& param : parameters(layers[l])) {
      addresses[l].push_back(reinterpret_cast<int64_t>(param.unsafeGetTensorImpl()));
    }
  }
  std::map<int64_t, int> rank_of;  // by address: the first rank that has it
  std::set<int> shared;            // layers
  const auto all = comm::gather(world, "addresses of parameters", addresses);
  for (int rank = 0; rank < world.size(); ++rank) {
    for (size_t l = 0; l < all[rank].size(); ++l) {
      for (const int64_t address : all[rank][l]) {
        if (rank_of.try_emplace(address, rank).first->second != rank) shared.insert(static_cast<int>(l));
      }
    }
  }
  std::vector<Problem> problems;
  for (const int l : shared) {
    problems.push_back({cat("layers.", l < layers.size() ? layers[l].name : cat(l)), "",
                        "is run by several ranks of this process; each must have a list and modules of its own", ""});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

int num_parts(const SyncSpec& sync, const Communicator& world) {
  if (sync.zero == 0) return 1;
  return sync.zero_group > 0 ? sync.zero_group : world.size();
}

// Parameters and gradients on disk are sharded, if only in one part.
param::Sharded sharded(const SyncedModules::Specs& specs, int parts) {
  using param::Sharded;
  if (specs.memory.parameters == Kept::OnDisk) return Sharded::Parameters;
  const Sharded asked = parts == 1 ? Sharded::Nothing : static_cast<Sharded>(specs.sync.zero);
  return specs.memory.gradients == Kept::OnDisk ? std::max(asked, Sharded::Gradients) : asked;
}

// Operations under way at once: those of an update's chunks, of parameters and gradients.
constexpr int kMostTransfers = 2 * kChunksInMemory;

std::optional<param::DiskSpace> disk_space(const ModelMemory& memory) {
  if (!memory.has_disk()) return std::nullopt;
  param::DiskSpace space;
  space.place.folders = memory.folders;
  space.place.key = "memory.folders";
  space.place.checksums = disk::Checksums::On;
  space.place.depth = kMostTransfers;
  space.chunk_bytes = memory.chunk_bytes;
  space.parameters = memory.parameters;
  space.gradients = memory.gradients;
  return space;
}

}  // namespace

void broadcast_values(const LayerList& layers, Communicator& world) {
  require_distinct_parameters(layers, world);
  for (int l = 0; l < layers.size(); ++l) broadcast(parameters(layers[l]), world);
  broadcast_buffers(layers, world);
}

void broadcast_buffers(const LayerList& layers, Communicator& world) { broadcast(buffers(layers), world); }

SyncedModules::SyncedModules(const LayerList& layers, Communicator& world, const Specs& specs) : sync_(specs.sync) {
  const int parts = num_parts(specs.sync, world);
  shards_ = world.split(world.rank() / parts, world.rank(), "shards");
  copies_ = world.split(world.rank() % parts, world.rank(), "copies");
  alone_ = world.split(world.rank(), 0, "alone");
  const param::Sharding sharding{sharded(specs, parts), shards_->rank(), parts};
  modules_ = std::make_unique<ModuleStore>(layers, sharding, disk_space(specs.memory));
  if (store().shards_gradients()) sink_ = std::make_unique<param::UnitSink>(store());
  std::vector<int> stage_of_layer = specs.stage_of_layer;
  stage_of_layer.resize(static_cast<size_t>(layers.size()));
  replication_ = sync::make_replication(specs.sync, {world, *shards_, *copies_, *alone_},
                                        {.store = store(),
                                         .unit_sink = sink_.get(),
                                         .stage_of_block = std::move(stage_of_layer),
                                         .optimizer = specs.optimizer});
  frozen_.assign(store().params().size(), 0);
  for (const param::Parameter& param : store().params()) {
    const auto notify = [this, &param] {
      if (on_gradient) on_gradient(param);
    };
    torch::autograd::impl::set_post_acc_grad_hooks(modules_->parameters()[param.index],
                                                   std::make_unique<GradientHook>(this, notify));
  }
}

// Removes only this object's hooks, because others may have been made of the same modules since.
SyncedModules::~SyncedModules() {
  for (const at::Tensor& parameter : modules_->parameters()) {
    const auto* hook = dynamic_cast<GradientHook*>(torch::autograd::impl::post_acc_grad_hooks(parameter).get());
    if (hook && hook->owner == this) torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
  }
}

void SyncedModules::require_followed(const LayerList& layers) const {
  auto problems = unknown_parameters(layers, modules_->parameters());
  for (Problem& problem : unfollowed_changes(*modules_, sync_)) problems.push_back(std::move(problem));
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

// Communicates only on a rank that finds a change. If other ranks have not changed, they are in a different collective,
// and the communicator reports the mismatch.
void SyncedModules::follow() {
  auto problems = unfollowed_changes(*modules_, sync_);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  std::vector<int64_t> replaced, frozen;
  for (const param::Parameter& param : store().params()) {
    replaced.push_back(modules_->holds(param) ? 0 : 1);
    frozen.push_back(modules_->parameters()[param.index].requires_grad() ? 0 : 1);
  }
  const bool any = std::ranges::find(replaced, 1) != replaced.end();
  if (!any && frozen == frozen_) return;
  agree_on(replaced);
  agree_on(frozen);
  frozen_ = frozen;
  for (const param::Parameter& param : store().params()) {
    if (replaced[param.index] == 0) continue;
    const at::Tensor values = modules_->parameters()[param.index].detach().clone(at::MemoryFormat::Contiguous);
    shards_->broadcast(values, 0).wait_host();
    copies_->broadcast(values, 0).wait_host();
    modules_->take_over(param, values);
  }
}

// Throws ConfigError unless all ranks have the same changes. `changes` is by parameter; 1: it has changed.
void SyncedModules::agree_on(const std::vector<int64_t>& changes) {
  std::vector<int64_t> counts = changes;
  for (Communicator* group : {shards_.get(), copies_.get()}) {
    counts = comm::agree(*group, "changed parameters", counts, ReduceOp::Sum);
  }
  const int64_t all = int64_t{shards_->size()} * copies_->size();
  std::vector<Problem> problems;
  for (const param::Parameter& param : store().params()) {
    const int64_t count = counts[param.index];
    if (count == 0 || count == all) continue;
    problems.push_back({param.name, cat("changed on ", count, " of ", all, " ranks"),
                        "must be loaded, frozen or released on all of them", ""});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

void SyncedModules::accumulate_in_store() const {
  for (const param::Parameter& param : store().params())
    modules_->parameters()[param.index].mutable_grad() = param.main_grad;
}

// The sum is written at the first use. All uses are opened and closed.
void SyncedModules::move_to_sink(const param::Parameter& param, const std::vector<int>& uses, int micro) const {
  at::Tensor& gradient = modules_->parameters()[param.index].mutable_grad();
  for (const int use : uses) {
    const param::GradSlot slot = sink_->open(param, use, micro);
    const bool adds = use == uses.front() && gradient.defined();
    const bool copies = adds && slot.beta == 0 && !gradient.is_sparse();
    if (slot.beta == 0 && !copies) slot.target.zero_();
    if (adds) copies ? slot.target.copy_(gradient) : slot.target.add_(gradient);
    sink_->close(param, use, micro);
  }
  gradient.reset();
}

void SyncedModules::reset_gradients() const {
  for (const at::Tensor& parameter : modules_->parameters()) parameter.mutable_grad().reset();
}

}  // namespace braid::modules
