// LayerNorm and RMSNorm, alone and fused with the residual addition before them, in one pass over memory in each
// direction. residual_norm.h adds autograd and the queue.
//
// Activations are contiguous tensors of float32, float64, bfloat16 or float16, [.., c]; parameters have the same dtype,
// [c]; check() fails on others. The arithmetic is float32 (float64 for float64), with one rounding at the end. Results
// do not depend on the number of threads. CUDA tensors go to on_device.h if libbraid_cuda.so is loaded; tensors of
// other devices go to composed.h.
//
// Source: Ba et al., "Layer Normalization" (2016); Zhang & Sennrich, "Root Mean Square Layer Normalization" (2019).
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/nn/kernels/rows.h"

namespace braid::kernels {

struct NormParams {
  NormKind kind = NormKind::Layer;
  at::Tensor weight;
  at::Tensor bias;  // Layer only
  double eps = 1e-5;
  double offset = -0.0;  // added to the weight, in the type of the arithmetic; -0 changes no weight
};

// The terms of a norm's input: residual + branch + branch_bias, or residual + branch, or the residual alone.
struct Addends {
  at::Tensor residual, branch, branch_bias;
};

struct Normed {
  at::Tensor sum;         // a new tensor; without a branch, the residual itself
  at::Tensor y;           // a new tensor
  at::Tensor mean, rstd;  // one per row, float32 or float64; mean is undefined for Rms
};
Normed norm_forward(const Addends& addends, const NormParams& params);

// The results of norm_backward(). dweight and dbias are [c] of float32 or float64.
struct NormGradients {
  at::Tensor dx;  // gradient of the sum, and so of residual and branch
  at::Tensor dweight, dbias;
};
// The inputs of norm_backward(). `dsum` is the gradient that reaches the sum directly, not through the norm; undefined
// means zero. With `token_parts`, on CPUs: the gradients of weights and bias are summed over each of so many parts of
// the tokens of [.., t, c], then over the parts in a tree (tree_sum()).
struct NormCotangents {
  at::Tensor dsum, dy;
  int token_parts = 0;
};
NormGradients norm_backward(const NormCotangents& cotangents, const Normed& normed, const NormParams& params);

// Returns residual + branch + branch_bias, a new tensor.
at::Tensor sum_of(const Addends& addends);

}  // namespace braid::kernels
