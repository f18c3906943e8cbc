// All data ranks run the same row of the schedule, so they meet in the same order.
#include "braid/module/replica_gradients.h"

#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace braid {

ReplicaGradients::ReplicaGradients(const std::map<int, ModuleStage>& stages, Communicator& data)
    : stages_(stages), data_(data) {
  std::map<const void*, size_t> seen;
  for (const auto& [number, stage] : stages) {
    std::vector<size_t>& places = places_[number];
    for (const auto& parameter : stage.parameters()) {
      const auto [found, fresh] = seen.try_emplace(parameter.unsafeGetTensorImpl(), parameters_.size());
      if (fresh) {
        parameters_.push_back(parameter);
        num_stages_of_.push_back(0);
      }
      if (std::find(places.begin(), places.end(), found->second) != places.end()) continue;
      places.push_back(found->second);
      ++num_stages_of_[found->second];
    }
  }
}

void ReplicaGradients::broadcast_state() {
  if (data_.size() == 1) return;
  const c10::AutoGradMode no_grad(false);
  const auto broadcast = [&](const at::Tensor& tensor) {
    const at::Tensor whole = tensor.detach().contiguous();
    data_.broadcast(whole, 0).wait_host();
    if (!tensor.is_contiguous()) tensor.detach().copy_(whole);
  };
  for (const auto& parameter : parameters_) broadcast(parameter);
  for (const auto& [number, stage] : stages_) {
    for (const auto& buffer : stage.buffers()) broadcast(buffer);
  }
}

void ReplicaGradients::begin_step() {
  if (data_.size() == 1) return;
  open_ = num_stages_of_;
  set_aside_.clear();
  for (const auto& parameter : parameters_) {
    set_aside_.push_back(parameter.grad());
    parameter.mutable_grad().reset();
  }
}

void ReplicaGradients::reduce(int stage) {
  if (data_.size() == 1) return;
  for (const size_t place : places_.at(stage)) {
    const at::Tensor& parameter = parameters_[place];
    if (--open_[place] > 0 || !parameter.requires_grad()) continue;
    at::Tensor& gradient = parameter.mutable_grad();
    gradient = gradient.defined() ? gradient.contiguous() : at::zeros_like(parameter, at::MemoryFormat::Contiguous);
    reductions_.push_back(data_.all_reduce(gradient, ReduceOp::Sum));
  }
}

void ReplicaGradients::finish() {
  for (Work& reduction : reductions_) reduction.wait_host();
  reductions_.clear();
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < set_aside_.size(); ++i) {
    if (!set_aside_[i].defined()) continue;
    at::Tensor& gradient = parameters_[i].mutable_grad();
    gradient = gradient.defined() ? set_aside_[i].add_(gradient) : set_aside_[i];
  }
  set_aside_.clear();
}

}  // namespace braid
