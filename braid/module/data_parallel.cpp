// Checks the user's calls and passes them to the ModelReplica.
#include "braid/module/data_parallel.h"

#include <c10/core/GradMode.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/module/layer_facts.h"
#include "braid/module/model_part.h"
#include "braid/module/model_replica.h"
#include "braid/module/refused_options.h"
#include "braid/module/torch_state.h"

namespace braid {
namespace {

OptimizerSpec spec_of(const ServerOptimizer& servers) {
  return {.kind = servers.kind,
          .momentum = servers.momentum,
          .beta1 = servers.beta1,
          .beta2 = servers.beta2,
          .eps = servers.eps,
          .weight_decay = servers.weight_decay,
          .clip_norm = 0};
}

// Adds the squares of a range to those of the ranges before. Slice by slice, so the sum does not depend on how slices
// are divided into ranges; in parts, because the float64 copies are larger than the gradients.
double with_squares_of(const at::Tensor& gradient, double sum) {
  constexpr int64_t kPart = 64 * param::kSliceAlign;
  for (const at::Tensor& part : gradient.split(kPart)) {
    const at::Tensor slices = part.view({-1, param::kSliceAlign}).to(at::kDouble).square().sum(1);
    const double* const squares = slices.const_data_ptr<double>();
    sum = std::accumulate(squares, squares + slices.numel(), sum);
  }
  return sum;
}

std::vector<Problem> problems(const LayerList& layers, const Communicator& world,
                              const DataParallel::Options& options) {
  const OptimizerSpec servers = spec_of(options.optimizer);
  std::vector<Problem> found = modules::refused_of_replicas({options.sync, servers, options.memory}, world);
  for (Problem& problem : name_problems(layers)) found.push_back(std::move(problem));
  for (Problem& problem : modules::storage_problems(layers)) found.push_back(std::move(problem));
  for (int l = 0; l < layers.size(); ++l) {
    if (layers[l].options.stash.empty() && layers[l].options.pop.empty()) continue;
    found.push_back({cat("layers.", layers[l].name), "",
                     "must stash and pop nothing in DataParallel, whose layers pass tensors to the next one only; a "
                     "ModulePipeline of one stage can",
                     ""});
  }
  const bool share_generator = world.rank_kind() == RankKind::Thread && world.size() > 1;
  for (int l = 0; share_generator && l < layers.size(); ++l) {
    for (const std::string& module : modules::drawing_modules(layers[l])) {
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

}  // namespace

class DataParallel::State {
 public:
  State(LayerList layers, Communicator& the_world, const Options& the_options)
      : world(the_world),
        options(the_options),
        replica(checked(std::move(layers), world, options), world,
                {options.sync, spec_of(options.optimizer), options.memory}, options.first_step) {}

  // Returns the gradient with which the loss's backward begins. It includes the factor of the average over ranks, which
  // thus costs nothing.
  double seed() {
    const bool own = replica.replication().gradients() == sync::GradientsOf::OwnReplica;
    return options.scale == GradientScale::Sum || own ? 1 : 1.0 / world.size();
  }
  void backward(const at::Tensor& loss, modules::ModelReplica::Backward kind) {
    replica.require_complete();
    check(loss.defined() && loss.numel() == 1 && loss.requires_grad(), "backward goes from one number with a graph");
    check(!replica.sends(), "between the last backward() of a step and the next comes step()");
    replica.backward(loss, seed(), kind);
  }
  void finish() {
    replica.require_complete();
    check(replica.sends(), "backward() comes before clip_grad_norm() and step()");
    replica.finish();
  }
  param::ParamStore& store() { return replica.synced().store(); }
  bool served() const { return options.sync.replication == ReplicationKind::ParameterServer; }

  Communicator& world;
  const Options options;
  modules::ModelReplica replica;
  std::vector<double> gradient_factors;  // of gradients on disk, by clip_grad_norm(), until the update reads them
};

DataParallel::DataParallel(LayerList layers, Communicator& world, Options options)
    : state_(std::make_unique<State>(std::move(layers), world, options)) {}
DataParallel::~DataParallel() = default;

const Tensors& DataParallel::parameters() const { return state_->replica.synced().modules().updated(); }

Tensors DataParallel::forward(const Tensors& inputs) { return state_->replica.forward(inputs); }

at::Tensor DataParallel::forward(const at::Tensor& input) {
  Tensors outputs = forward(Tensors{input});
  check(outputs.size() == 1, "a model of one output");
  return outputs.front();
}

void DataParallel::accumulate(const at::Tensor& loss) {
  state_->backward(loss, modules::ModelReplica::Backward::OfMany);
}
void DataParallel::backward(const at::Tensor& loss) { state_->backward(loss, modules::ModelReplica::Backward::Last); }

double DataParallel::clip_grad_norm(double largest) {
  state_->finish();
  const c10::AutoGradMode no_grad(false);
  param::ParamStore& store = state_->store();
  double squares = 0;
  for (const param::OwnedRange& range : store.owned()) {
    const at::Tensor gradient = store.in_memory(range.grad);
    for (const double factor : state_->gradient_factors) gradient.mul_(factor);
    squares = with_squares_of(gradient, squares);
  }
  Communicator& shards = state_->replica.synced().shards();
  const double norm = std::sqrt(comm::agree(shards, "squares of gradients", squares, ReduceOp::Sum));
  const double scale = largest / (norm + 1e-6);
  if (scale >= 1) return norm;
  if (store.has_gradients_on_disk()) {
    state_->gradient_factors.push_back(scale);
  } else {
    for (const param::OwnedRange& range : store.owned()) range.grad.mul_(scale);
  }
  return norm;
}

void DataParallel::step(const std::function<void()>& update) {
  check(!state_->served(), "servers update: step(lr)");
  if (state_->options.memory.has_disk()) {
    throw ConfigError({{"step", "an optimizer in memory",
                        "must be step(OptimizerOnDisk&), which updates parameters and gradients on disk", ""}});
  }
  state_->finish();
  update();
  state_->replica.updated();
}

void DataParallel::step(OptimizerOnDisk& optimizer) {
  check(!state_->served(), "servers update: step(lr)");
  state_->finish();
  optimizer.step_of({parameters(), state_->store().disk(), state_->gradient_factors});
  state_->gradient_factors.clear();
  state_->replica.updated();
}

void DataParallel::step(torch::optim::Optimizer& optimizer) {
  modules::require_parameters_of(parameters(), optimizer);
  step([&] { optimizer.step(); });
}

void DataParallel::step(double lr) {
  check(state_->served(), "without servers an optimizer updates: step(optimizer)");
  state_->finish();
  const double scale = state_->options.scale == GradientScale::Sum ? state_->world.size() : 1;
  state_->replica.replication().update({lr, scale});
  state_->replica.updated();
}

void DataParallel::with_whole_parameters(const std::function<void()>& body) {
  state_->replica.with_whole_parameters(body);
}

modules::ModelPart DataParallel::part() {
  modules::ModelReplica& replica = state_->replica;
  check(!replica.is_in_step(), "save() and load() come between steps, not after accumulate() or backward()");
  replica.follow();
  return {replica.layers(),     replica.layers(),    &replica.synced(),
          state_->options.sync, replica.num_steps(), state_->world};
}

void DataParallel::go_on_after(int64_t steps) { state_->replica.go_on_after(steps); }

int64_t DataParallel::bytes_sent() const { return state_->replica.replication().bytes_sent(); }

double mean(double value, Communicator& world) {
  return comm::agree(world, "mean", value, ReduceOp::Sum) / world.size();
}

// Torch's archives are not thread-safe, so ranks take turns.
void broadcast_state(torch::optim::Optimizer& optimizer, Communicator& world) {
  if (world.size() == 1) return;
  std::string text;
  if (world.rank() == 0) {
    std::ostringstream written;
    torch::save(optimizer, written);
    text = written.str();
  }
  text = comm::broadcast_text(world, "state of the optimizer", text);
  for (int rank = 1; rank < world.size(); ++rank) {
    if (rank == world.rank()) {
      std::istringstream read(text);
      torch::load(optimizer, read);
    }
    world.barrier().wait_host();
  }
}

}  // namespace braid
