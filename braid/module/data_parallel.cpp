// Hooks on gradients and edges in the graph turn what autograd does into the calls of a Replication.
#include "braid/module/data_parallel.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize.h>

#include <cmath>
#include <cstring>
#include <sstream>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/gather_edges.h"
#include "braid/module/layer_facts.h"
#include "braid/module/module_store.h"
#include "braid/param/unit_sink.h"
#include "braid/sync/bucketed_all_reduce.h"
#include "braid/sync/zero.h"

namespace braid {
namespace {

struct GradientHook final : torch::autograd::PostAccumulateGradHook {
  explicit GradientHook(std::function<void()> the_call) : call(std::move(the_call)) {}
  void operator()(const at::Tensor&) override { call(); }
  std::function<void()> call;
};

std::vector<Problem> problems(const LayerList& layers, const Communicator& world,
                              const DataParallel::Options& options) {
  std::vector<Problem> found;
  const SyncSpec& sync = options.sync;
  if (sync.replication != "all-reduce") {
    found.push_back({"sync.replication", sync.replication, "must be all-reduce for modules", "all-reduce"});
  }
  if (sync.compression != "none") {
    found.push_back({"sync.compression", sync.compression, "must be none for modules", "none"});
  }
  if (sync.zero < 0 || sync.zero > 3) found.push_back({"sync.zero", cat(sync.zero), "must be from 0 to 3", ""});
  const int group = sync.zero_group;
  if (group < 0 || (group > 0 && world.size() % group != 0)) {
    found.push_back({"sync.zero_group", cat(group), cat("must be 0 or divide the ", world.size(), " ranks"), "0"});
  }
  const bool share_generator = world.rank_kind() == RankKind::Thread && world.size() > 1;
  for (int l = 0; share_generator && l < layers.size(); ++l) {
    for (const std::string& module : drawing_modules(layers[l])) {
      found.push_back({layers[l].name, module,
                       "draws from the random generator of the process, which ranks that are threads share",
                       "KeyedDropout, or ranks that are processes"});
    }
  }
  return found;
}

LayerList checked(LayerList layers, const Communicator& world, const DataParallel::Options& options) {
  auto found = problems(layers, world, options);
  if (!found.empty()) throw ConfigError(std::move(found));
  return layers;
}

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

}  // namespace

class DataParallel::State {
 public:
  State(LayerList the_layers, Communicator& the_world, const Options& options)
      : layers(checked(std::move(the_layers), the_world, options)),
        world(the_world),
        seed(options.scale == GradientScale::Average ? 1.0 / world.size() : 1.0) {
    const int parts = options.sync.zero == 0 ? 1 : options.sync.zero_group > 0 ? options.sync.zero_group : world.size();
    shards = world.split(world.rank() / parts, world.rank(), "shards");
    copies = world.split(world.rank() % parts, world.rank(), "copies");
    alone = world.split(world.rank(), 0, "alone");
    broadcast_values(layers, world);
    const Sharding sharding =
        parts == 1 ? Sharding{} : Sharding{static_cast<Sharded>(options.sync.zero), shards->rank(), parts};
    modules = std::make_unique<ModuleStore>(layers, sharding);
    ParamStore& store = modules->store();
    if (store.shards_gradients()) sink = std::make_unique<UnitSink>(store);
    if (parts == 1) {
      replication = std::make_unique<BucketedAllReduce>(options.sync, store, ReplicaGroups{world, *alone});
    } else {
      replication = std::make_unique<Zero>(store, sink.get(), ShardGroups{*shards, *copies, *alone},
                                           std::vector<int>(static_cast<size_t>(layers.size()), 0));
    }
    held.resize(static_cast<size_t>(layers.size()));
    add_hooks();
    begin_step();
  }

  ~State() {
    for (const at::Tensor& parameter : modules->parameters()) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
    }
  }

  void add_hooks() {
    for (const Parameter& param : modules->store().params()) {
      torch::autograd::impl::set_post_acc_grad_hooks(
          modules->parameters()[param.index], std::make_unique<GradientHook>([this, &param] { arrived(param); }));
    }
  }

  // Gradients that are whole are accumulated in place, in views of the flat buffer.
  void begin_step() {
    const ParamStore& store = modules->store();
    if (!sink) store.flat_grads().zero_();
    phase = StepPhase::Accumulating;
    finished = false;
  }

  void bind_accumulators() {
    for (const Parameter& param : modules->store().params()) {
      at::Tensor& gradient = modules->parameters()[param.index].mutable_grad();
      if (sink) {
        gradient.reset();
      } else {
        gradient = param.main_grad;
      }
    }
  }

  void arrived(const Parameter& param) {
    if (sink) {
      at::Tensor& gradient = modules->parameters()[param.index].mutable_grad();
      write(param, gradient);
      gradient.reset();
    } else if (phase == StepPhase::Sending) {
      replication->ready(param);
    }
    seen[param.index] = true;
  }

  // A hook is called once for all uses.
  void write(const Parameter& param, const at::Tensor& gradient) {
    for (const int use : param.local_uses) {
      const GradSlot slot = sink->open(param, use, 0);
      if (slot.beta == 0) gradient.defined() ? slot.target.copy_(gradient) : slot.target.zero_();
      sink->close(param, use, 0);
    }
  }

  void run_backward(const at::Tensor& loss) {
    check(loss.defined() && loss.numel() == 1, "backward goes from one number");
    bind_accumulators();
    seen.assign(modules->parameters().size(), false);
    if (sink) sink->begin_step(1);
    loss.backward(at::full_like(loss, seed));
    for (size_t layer = 0; layer < held.size(); ++layer) {
      while (held[layer] > 0) release_backward(static_cast<int>(layer));
    }
    if (sink || phase == StepPhase::Sending) send_the_rest();
  }

  // Whatever the loss did not depend on.
  void send_the_rest() {
    const c10::AutoGradMode no_grad(false);
    for (const Parameter& param : modules->store().params()) {
      if (!seen[param.index]) arrived(param);
    }
  }

  void finish() {
    check(phase == StepPhase::Sending, "backward() comes before clip_grad_norm() and step()");
    if (finished) return;
    const c10::AutoGradMode no_grad(false);
    replication->finish();
    finished = true;
    modules->bind_gradients();
  }

  void acquire_backward(int layer) {
    replication->acquire(layer, Phase::Backward);
    ++held[static_cast<size_t>(layer)];
  }
  void release_backward(int layer) {
    if (held[static_cast<size_t>(layer)] == 0) return;
    --held[static_cast<size_t>(layer)];
    replication->release(layer, Phase::Backward);
  }

  Tensors run(int layer, Tensors tensors) {
    const bool gathers = modules->store().shards_parameters();
    if (!gathers) return layers[layer].forward(tensors);
    replication->acquire(layer, Phase::Forward);
    const bool recorded = c10::GradMode::is_enabled();
    const auto edge = [this, layer](void (State::*call)(int)) {
      return std::make_shared<const std::function<void()>>([this, layer, call] { (this->*call)(layer); });
    };
    if (recorded) tensors = with_call_in_backward(tensors, edge(&State::release_backward));
    tensors = layers[layer].forward(tensors);
    if (recorded) tensors = with_call_in_backward(tensors, edge(&State::acquire_backward));
    replication->release(layer, Phase::Forward);
    return tensors;
  }

  enum class StepPhase { Accumulating, Sending };

  LayerList layers;
  Communicator& world;
  const double seed;  // of every loss: the average costs nothing then
  std::unique_ptr<Communicator> shards, copies, alone;
  std::unique_ptr<ModuleStore> modules;
  std::unique_ptr<UnitSink> sink;  // gradients shared out
  std::unique_ptr<Replication> replication;
  StepPhase phase = StepPhase::Accumulating;
  std::vector<bool> seen;  // by parameter, in the last backward
  std::vector<int> held;   // by layer, acquired for backward
  bool finished = false;
};

DataParallel::DataParallel(LayerList layers, Communicator& world, Options options)
    : state_(std::make_unique<State>(std::move(layers), world, options)) {}
DataParallel::~DataParallel() = default;

const Tensors& DataParallel::parameters() const { return state_->modules->updated(); }

Tensors DataParallel::forward(const Tensors& inputs) {
  Tensors tensors = inputs;
  for (int layer = 0; layer < state_->layers.size(); ++layer) tensors = state_->run(layer, std::move(tensors));
  return tensors;
}

at::Tensor DataParallel::forward(const at::Tensor& input) {
  Tensors outputs = forward(Tensors{input});
  check(outputs.size() == 1, "a model of one output");
  return outputs.front();
}

void DataParallel::accumulate(const at::Tensor& loss) {
  check(state_->phase == State::StepPhase::Accumulating, "a step takes place between backward() and what follows");
  state_->run_backward(loss);
}

void DataParallel::backward(const at::Tensor& loss) {
  check(state_->phase == State::StepPhase::Accumulating, "backward() is the last of a step");
  state_->phase = State::StepPhase::Sending;
  state_->run_backward(loss);
}

double DataParallel::clip_grad_norm(double largest) {
  state_->finish();
  const c10::AutoGradMode no_grad(false);
  const at::Tensor squares = at::zeros({1}, at::kDouble);
  for (const OwnedRange& range : state_->modules->store().owned()) {
    squares.add_(range.grad.to(at::kDouble).square().sum());
  }
  if (state_->shards->size() > 1) state_->shards->all_reduce(squares, ReduceOp::Sum).wait_host();
  const double norm = std::sqrt(squares.item<double>());
  const double scale = largest / (norm + 1e-6);
  for (const OwnedRange& range : state_->modules->store().owned()) {
    if (scale < 1) range.grad.mul_(scale);
  }
  return norm;
}

void DataParallel::step(const std::function<void()>& update) {
  state_->finish();
  update();
  state_->replication->updated();
  state_->modules->note_update();
  state_->begin_step();
}

void DataParallel::step(torch::optim::Optimizer& optimizer) {
  step([&] { optimizer.step(); });
}

void DataParallel::with_whole_parameters(const std::function<void()>& body) {
  for (int layer = 0; layer < state_->layers.size(); ++layer) state_->replication->acquire(layer, Phase::Forward);
  body();
  for (int layer = 0; layer < state_->layers.size(); ++layer) state_->replication->release(layer, Phase::Forward);
}

int64_t DataParallel::bytes_sent() const { return state_->replication->bytes_sent(); }

double mean(double value, Communicator& world) {
  const at::Tensor sum = at::full({1}, value, at::kDouble);
  world.all_reduce(sum, ReduceOp::Sum).wait_host();
  return sum.item<double>() / world.size();
}

// Torch's archives are not for several threads at once: ranks take turns.
void broadcast_state(torch::optim::Optimizer& optimizer, Communicator& world) {
  if (world.size() == 1) return;
  std::string text;
  if (world.rank() == 0) {
    std::ostringstream written;
    torch::save(optimizer, written);
    text = written.str();
  }
  const at::Tensor length = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  world.broadcast(length, 0).wait_host();
  const at::Tensor bytes = at::empty({length.item<int64_t>()}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  world.broadcast(bytes, 0).wait_host();
  for (int rank = 1; rank < world.size(); ++rank) {
    if (rank == world.rank()) {
      std::istringstream read(std::string(static_cast<const char*>(bytes.const_data_ptr()), bytes.numel()));
      torch::load(optimizer, read);
    }
    world.barrier().wait_host();
  }
}

}  // namespace braid
