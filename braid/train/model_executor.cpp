// Autograd graphs are cut at stage borders: a stage's input is a leaf, its output is seeded with the gradient received.
#include "braid/train/model_executor.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"

namespace braid {

ModelExecutor::ModelExecutor(const RunSpec& spec, StageModel& model, const BatchSource& batches, ExecutorMode mode)
    : model_(model),
      batches_(batches),
      mode_(mode),
      activation_shape_{spec.train.microbatch, spec.model.context, spec.model.width} {}

void ModelExecutor::begin_step(int64_t step, double loss_scale) {
  step_ = step;
  loss_gradient_ = loss_scale / batches_.num_global_microbatches();  // the loss is the mean over the step
  in_flight_.clear();
  input_gradients_.clear();
  losses_.clear();
  if (model_.is_last()) losses_.resize(batches_.num_microbatches());
}

void ModelExecutor::forward(int, int micro) {
  const c10::AutoGradMode grad(mode_ == ExecutorMode::Training);
  Microbatch microbatch = batches_.microbatch(step_, micro);
  microbatch.training = mode_ == ExecutorMode::Training;
  microbatch.loss_gradient = loss_gradient_;
  InFlight& flight = in_flight_[micro];
  if (microbatch.training && flight.input.defined()) flight.input.requires_grad_(true);
  flight.output = model_.forward(flight.input, microbatch);
  if (!model_.is_last()) return;
  losses_[micro] = flight.output.item<double>();
  if (mode_ == ExecutorMode::Evaluation) in_flight_.erase(micro);
}

void ModelExecutor::full_backward(int stage, int micro) {
  input_grad(stage, micro);
  weight_grad(stage, micro);
}

void ModelExecutor::input_grad(int, int micro) {
  const MemoryScope scope(MemoryCategory::Activations);
  InFlight flight = std::move(in_flight_.extract(micro).mapped());
  if (model_.is_last()) flight.output_gradient = at::full_like(flight.output, loss_gradient_);
  torch::autograd::backward({flight.output}, {flight.output_gradient});
  if (!model_.is_first()) input_gradients_[micro] = flight.input.grad();
}

void ModelExecutor::weight_grad(int, int micro) {
  const MemoryScope scope(MemoryCategory::Activations);
  model_.weight_grads().run(micro);
}

void ModelExecutor::reduce_grad(int) {
  if (on_reduce) on_reduce();
}

at::Tensor ModelExecutor::output(int, int micro) {
  auto output = in_flight_.at(micro).output.detach();
  if (mode_ == ExecutorMode::Evaluation) in_flight_.erase(micro);
  return output.contiguous();
}

at::Tensor ModelExecutor::input_gradient(int, int micro) {
  return std::move(input_gradients_.extract(micro).mapped()).contiguous();
}

at::Tensor ModelExecutor::input_buffer(int, int micro) { return in_flight_[micro].input = activation_buffer(); }

at::Tensor ModelExecutor::output_gradient_buffer(int, int micro) {
  return in_flight_[micro].output_gradient = activation_buffer();
}

at::Tensor ModelExecutor::activation_buffer() const {
  const MemoryScope scope(MemoryCategory::Communication);
  return at::empty(activation_shape_, model_.params().flat_data().options().requires_grad(false));
}

}  // namespace braid
