// Autograd graphs are cut at stage borders. A stage's inputs are leaves, and its outputs are seeded with the gradients
// received. An input that a layer writes in place is copied first, because a leaf must not be written. If the previous
// stage is on the same rank, it also keeps that tensor for its backward. A tensor that is only passed on is both leaf
// and output, and autograd copies its gradient.
#include "braid/module/layer_executor.h"

#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/auxiliary_loss.h"

namespace braid::modules {
namespace {

double sum_of(const std::vector<at::Tensor>& losses) {
  double sum = 0;
  for (const auto& loss : losses) sum += loss.item<double>();
  return sum;
}

}  // namespace

LayerExecutor::LayerExecutor(const std::map<int, LayerStage>& stages, int num_stages, LossFunction loss,
                             const ActivationsOnDisk* activations)
    : stages_(stages), last_stage_(num_stages - 1), loss_function_(std::move(loss)), activations_(activations) {}

void LayerExecutor::begin_step(ModuleStep step) {
  step_ = std::move(step);
  in_flight_.clear();
  losses_.clear();
  auxiliary_losses_.clear();
  count_ = 0;
  results_.assign(step_.split.num_microbatches, {});
}

double LayerExecutor::loss() const { return sum_of(losses_); }
double LayerExecutor::auxiliary_loss() const { return sum_of(auxiliary_losses_); }

std::vector<Tensors> LayerExecutor::take_results() { return std::exchange(results_, {}); }

Tensors LayerExecutor::part(const Tensors& whole, int micro) const {
  Tensors parts;
  for (const auto& tensor : whole) parts.push_back(step_.split.part(tensor, micro));
  return parts;
}

void LayerExecutor::forward(int stage, int micro) {
  const c10::AutoGradMode grad(trains());
  InFlight& flight = in_flight_[{stage, micro}];
  if (stage == 0) flight.inputs = part(step_.inputs, micro);
  const auto& specs = shapes(stage, micro).inputs;
  for (size_t i = 0; trains() && i < specs.size(); ++i) {
    if (specs[i].requires_grad) flight.inputs[i].requires_grad_(true);
  }
  MicrobatchContext context = step_.context;
  context.micro += micro;
  stages_.at(stage).listeners().begin_microbatch(context);
  const auto on_disk = saving(stage, flight);
  Tensors outputs = run_stage(stage, micro, flight);
  if (stage < last_stage_) {
    check_outputs(stage, micro, outputs);
    flight.outputs = std::move(outputs);
  } else if (trains()) {
    take_loss(flight, micro, outputs);
  } else {
    results_[micro] = std::move(outputs);
    in_flight_.erase({stage, micro});
  }
}

// Returns a scope in which the stage's activations go to disk; null if they stay in memory.
std::unique_ptr<ActivationsOnDisk::Forward> LayerExecutor::saving(int stage, const InFlight& flight) const {
  if (!activations_ || !trains()) return nullptr;
  Tensors stays = stages_.at(stage).parameters();
  for (const Tensors& more : {stages_.at(stage).buffers(), flight.inputs}) {
    stays.insert(stays.end(), more.begin(), more.end());
  }
  return std::unique_ptr<ActivationsOnDisk::Forward>(new ActivationsOnDisk::Forward(activations_->forward(stays)));
}

Tensors LayerExecutor::run_stage(int stage, int micro, InFlight& flight) {
  const StageShapes& specs = shapes(stage, micro);
  Tensors inputs = flight.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (stage > 0 && specs.written[i]) inputs[i] = inputs[i].clone();  // stage 0's inputs are copies already
  }
  const AuxiliaryLossScope scope;
  Tensors outputs = stages_.at(stage).forward(inputs, step_.context.purpose);
  if (!trains() || !scope.total().defined()) return outputs;
  if (!specs.contributes) {
    throw RunError(cat("stage ", stage, " contributed an auxiliary loss, and none when its shapes were found out; ",
                       "contribute zero there, or call retrace() after a change of the modules"));
  }
  flight.auxiliary = scope.total().mul(step_.weights.at(micro));
  auxiliary_losses_.push_back(flight.auxiliary.detach());
  return outputs;
}

void LayerExecutor::take_loss(InFlight& flight, int micro, const Tensors& outputs) {
  const auto [loss, count] = loss_function_(outputs, part(step_.targets, micro));
  if (loss.numel() != 1) {
    throw ConfigError({{"loss", cat("a tensor of ", loss.sizes()), "must give one number for a microbatch", ""}});
  }
  flight.outputs = {loss.mul(step_.weights.at(micro))};
  losses_.push_back(flight.outputs[0].detach());
  count_ += count;
}

// Throws RunError if outputs differ from the traced ones, which fixed the next stage's buffers and the gradients that
// come back.
void LayerExecutor::check_outputs(int stage, int micro, const Tensors& outputs) const {
  auto found = specs_of(outputs);
  const auto& expected = shapes(stage, micro).outputs;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    // A tensor that no longer needs a gradient still gets one, which is ignored. The opposite is an error, because its
    // gradient would be missing.
    if (!found[i].requires_grad) found[i].requires_grad = expected[i].requires_grad;
  }
  if (found == expected) return;
  throw RunError(cat("stage ", stage, " gave ", text(found), " for microbatch ", micro, ", and ", text(expected),
                     " when its shapes were found out; call retrace() after a change of the modules"));
}

void LayerExecutor::input_grad(int stage, int micro) {
  if (before_backward) before_backward(stage, micro);
  InFlight& flight = in_flight_.at({stage, micro});
  const StageShapes& specs = shapes(stage, micro);
  Tensors roots, seeds;
  size_t next = 0;
  for (size_t i = 0; i < flight.outputs.size(); ++i) {
    at::Tensor seed;  // undefined for the loss, whose gradient is one
    if (stage < last_stage_ && specs.outputs[i].requires_grad) seed = flight.output_gradients.at(next++);
    if (!flight.outputs[i].requires_grad()) continue;
    roots.push_back(flight.outputs[i]);
    seeds.push_back(seed);
  }
  if (flight.auxiliary.defined() && flight.auxiliary.requires_grad()) {
    roots.push_back(std::exchange(flight.auxiliary, {}));
    seeds.emplace_back();
  }
  if (!roots.empty()) torch::autograd::backward(roots, seeds);
  if (after_backward) after_backward();
  for (size_t i = 0; i < specs.inputs.size(); ++i) {
    if (!specs.inputs[i].requires_grad) continue;
    const at::Tensor& gradient = flight.inputs[i].grad();
    flight.input_gradients.push_back(gradient.defined() ? gradient : at::zeros_like(flight.inputs[i]));
  }
  flight.inputs.clear();
  flight.outputs.clear();
  flight.output_gradients.clear();
  if (stage == 0) in_flight_.erase({stage, micro});
}

void LayerExecutor::reduce_grad(int stage) {
  if (on_reduce) on_reduce(stage);
}

pipe::StageExecutor::Tensors LayerExecutor::outputs(int stage, int micro) {
  Tensors result;
  for (const auto& output : in_flight_.at({stage, micro}).outputs) result.push_back(output.detach().contiguous());
  if (!trains()) in_flight_.erase({stage, micro});
  return result;
}

pipe::StageExecutor::Tensors LayerExecutor::input_gradients(int stage, int micro) {
  Tensors result;
  const InFlight flight = std::move(in_flight_.extract({stage, micro}).mapped());
  for (const auto& gradient : flight.input_gradients) result.push_back(gradient.contiguous());
  return result;
}

pipe::StageExecutor::Tensors LayerExecutor::input_buffers(int stage, int micro) {
  Tensors& inputs = in_flight_[{stage, micro}].inputs;
  for (const auto& spec : shapes(stage, micro).inputs) inputs.push_back(spec.empty());
  return inputs;
}

pipe::StageExecutor::Tensors LayerExecutor::output_gradient_buffers(int stage, int micro) {
  Tensors& gradients = in_flight_[{stage, micro}].output_gradients;
  for (const auto& spec : shapes(stage, micro).outputs) {
    if (spec.requires_grad) gradients.push_back(spec.empty());
  }
  return gradients;
}

void LayerExecutor::give_inputs(int stage, int micro, Tensors tensors) {
  in_flight_[{stage, micro}].inputs = std::move(tensors);
}

void LayerExecutor::give_output_gradients(int stage, int micro, Tensors tensors) {
  in_flight_[{stage, micro}].output_gradients = std::move(tensors);
}

}  // namespace braid::modules
