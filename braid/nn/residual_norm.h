// The residual stream: adds a branch to it and normalises the sum, in one pass over memory in each direction. Backward
// leaves the weight gradients on the queue.
//
//   residual ----(+)---- sum ---------> the next residual       backward, one pass:
//                 |       |               d = dsum + norm'(dy), the gradient of residual and of branch alike;
//   branch + bias'        norm --> y      sums over rows: the norm's weight and bias
#pragma once

#include "braid/nn/activation.h"
#include "braid/nn/dropout.h"
#include "braid/nn/kernels/norm.h"
#include "braid/nn/weight_grads.h"

namespace braid::nn {

// A norm over the features of replicated activations. Layer: (x - mean) / sqrt(var + eps) * weight + bias. Rms: x /
// sqrt(mean x^2 + eps) * weight. The arithmetic is float32 if x is narrower, with one rounding at the end. Sources: Ba
// et al., "Layer Normalization" (2016); Zhang & Sennrich, "Root Mean Square Layer Normalization" (2019).
struct NormCall {
  kernels::NormKind kind = kernels::NormKind::Layer;
  const param::Parameter* weight = nullptr;  // [c]
  const param::Parameter* bias = nullptr;    // [c], Layer only
  double eps = 1e-5;
  param::WeightGradQueue* queue = nullptr;
  int micro = 0;
  Keep keep = Keep::Everything;
  double offset = -0.0;  // added to the weight; -0 changes no weight
  int token_parts = 0;   // in which the weights' gradients are summed over tokens (kernels::norm_backward)
};

// A branch's output, to be added to the residual stream: btc, already all-reduced over the tensor axis, and its bias.
struct Branch {
  at::Tensor btc;
  const param::Parameter* bias = nullptr;  // [c]
};

struct Residual {
  at::Tensor sum_btc;
  Activation normed_btc;  // with Keep::Selected recomputed from the sum, which the norm's backward keeps anyway
};

// Computes normed = norm(x), sum = x. The caller continues the residual stream with `sum_btc`; its gradient and the
// norm's are then added in one pass.
Residual norm_residual(const at::Tensor& x_btc, const NormCall& call);
// Computes sum = residual + branch, normed = norm(sum). The bits, gradients included, are those of join() followed by
// norm_residual().
Residual join_and_norm(const at::Tensor& residual_btc, const Branch& branch, const NormCall& call);

// Returns residual + branch, without a norm.
at::Tensor join(const at::Tensor& residual_btc, const Branch& branch, const RankContext& rank,
                const Microbatch& microbatch);

// Returns the branch after dropout of the sum of branch and bias. Without dropout, returns the branch unchanged, with
// its bias not yet added.
Branch dropped(const Branch& branch, const Dropout& dropout, const RankContext& rank, const Microbatch& microbatch);

}  // namespace braid::nn
