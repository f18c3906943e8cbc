// An op of a model that the program computes itself, with LibTorch's functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "braid/nn/weight_grads.h"

namespace braid::model {

struct OpaqueFunction {
  // Returns the op's output. It is run with autograd, which makes the backward. REQUIRES: it depends on its arguments
  // alone, and the same arguments give the same bits; it does not write to them.
  std::function<at::Tensor(const at::Tensor& x, const std::vector<at::Tensor>& params)> forward;
};

}  // namespace braid::model

namespace braid::nn {

// Runs the function. Its graph is kept until backward, which leaves the gradients of the parameters on the queue.
at::Tensor opaque(const model::OpaqueFunction& function, const at::Tensor& x, const std::vector<GradTarget>& params);

}  // namespace braid::nn
