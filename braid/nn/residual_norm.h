// The residual stream: a branch is added to it and the sum is normalised, in one pass over memory each way, with the
// weight gradients left on the queue.
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

struct NormCall {
  kernels::NormKind kind = kernels::NormKind::Layer;
  const param::Parameter* weight = nullptr;  // [c]
  const param::Parameter* bias = nullptr;    // [c], Layer only
  double eps = 1e-5;
  param::WeightGradQueue* queue = nullptr;
  int micro = 0;
  Keep keep = Keep::Everything;
};

// A branch's output to add to the residual stream: btc, already all-reduced over the tensor ranks, and its bias (null:
// none).
struct Branch {
  at::Tensor btc;
  const param::Parameter* bias = nullptr;  // [c]
};

struct Residual {
  at::Tensor sum_btc;
  Activation normed_btc;  // with Keep::Selected it is made again from the sum, which the norm's backward keeps anyway
};

// normed = norm(x), sum = x. Continue the residual with `sum_btc`: its gradient and the norm's are then added in one
// pass.
Residual norm_residual(const at::Tensor& x_btc, const NormCall& call);
// sum = residual + branch, normed = norm(sum). The same bits as join() and then norm_residual(), gradients included.
Residual join_and_norm(const at::Tensor& residual_btc, const Branch& branch, const NormCall& call);

// residual + branch, without a norm.
at::Tensor join(const at::Tensor& residual_btc, const Branch& branch, const RankContext& rank,
                const Microbatch& microbatch);

// The branch after dropout of the sum of branch and bias. Without dropout the branch as it is, its bias not yet added.
Branch dropped(const Branch& branch, const Dropout& dropout, const RankContext& rank, const Microbatch& microbatch);

}  // namespace braid::nn
