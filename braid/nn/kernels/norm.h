// LayerNorm and RMSNorm, alone and fused with the residual addition before them, one pass over memory each way.
// No autograd and no queue: residual_norm.h adds those.
//
// Activations are contiguous tensors of float32, float64, bfloat16 or float16, [.., c]; parameters have their dtype,
// [c]. Computed in float32 (float64 for float64) and rounded once. Results do not depend on the number of threads.
// check() fails on other tensors. CUDA tensors go to on_device.h where libbraid_cuda.so is loaded, tensors of other
// devices to composed.h.
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
};

// The input of a norm: residual + branch + branch_bias, or the residual alone; `branch_bias` is optional.
struct Addends {
  at::Tensor residual, branch, branch_bias;
};

struct Normed {
  at::Tensor sum;         // fresh; the residual itself without a branch
  at::Tensor y;           // fresh
  at::Tensor mean, rstd;  // one per row, float32 or float64; mean is undefined for Rms
};
Normed norm_forward(const Addends& addends, const NormParams& params);

// dweight and dbias are [c] of float32 or float64.
struct NormGradients {
  at::Tensor dx;  // of the sum, hence of residual and of branch
  at::Tensor dweight, dbias;
};
// `dsum` is the gradient that reaches the sum past the norm; undefined is zero.
struct NormCotangents {
  at::Tensor dsum, dy;
};
NormGradients norm_backward(const NormCotangents& cotangents, const Normed& normed, const NormParams& params);

// residual + branch + branch_bias, fresh.
at::Tensor sum_of(const Addends& addends);

}  // namespace braid::kernels
