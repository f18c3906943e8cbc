// The matrix products of the model: y = x W^T + b as a custom autograd Function. Its backward computes dX at once and
// leaves dW and db on the weight-gradient queue.
//
// Trained parameters are inputs of the graph, so that a graph exists even if x needs no gradient, but their .grad stays
// undefined. x is kept only for the gradient of a trained weight. With gradients disabled, nothing is saved and nothing
// is queued. x and the parameters have one dtype: float32, float64, bfloat16 or float16. The queued products are summed
// in the slots' type (weight_grads.h).
#pragma once

#include "braid/model/dims.h"
#include "braid/model/model_spec.h"
#include "braid/nn/activation.h"
#include "braid/nn/weight_grads.h"

namespace braid::nn {

enum class Rows {
  Together,  // by LibTorch's product
  Each,      // by kernels::row_product(), without autograd: for the few rows of new tokens in generation
};
// Chooses the product for a layer's input, [.., b, t, i].
Rows rows_of(const at::Tensor& x, const Microbatch& microbatch);

struct LinearCall {
  ParamUse weight;                         // [o, i]
  const param::Parameter* bias = nullptr;  // [o]; null: none
  param::WeightGradQueue* queue = nullptr;
  int micro = 0;
  Rows rows = Rows::Together;
  // Where sums have parts: the parts of the inner dim, i, and of the outputs, o, over which x's gradient is summed.
  kernels::InnerParts inner = {}, outputs = {};
  bool is_part = false;        // of a sum over tensor ranks, which then is made in the type of the result
  bool sums_gradient = false;  // x's gradient is summed over tensor ranks by copy_to() or gather_tokens()
};

// Returns the parts of this rank's sums over a dim that tensor ranks split; one part for other dims, and where sums are
// made in any order.
kernels::InnerParts inner_parts(const ModelSpec& spec, const model::Dim& dim, const RankContext& rank);

// Returns x W^T + b. x: any dims, the last is i. The result has the same dims with o as the last, contiguous. If x can
// be recomputed (x.again), it is not kept: backward recomputes it, and the queue holds it from then until the entry has
// run. Where sums have parts, x may be wider than the parameters, with their numbers; its gradient is then as wide. A
// part of a sum is float32 if x is narrower. With the queue's overlap on, communication of x.again travels during the
// product of x's gradient, and the weight gradient waits for the sum of x's gradient.
at::Tensor linear(const Activation& x, const LinearCall& call);

// Adds a bias in place, y += bias over the last dim, for a bias that follows a reduction. REQUIRES: no backward has
// saved y.
at::Tensor add_bias_(const at::Tensor& y, const GradTarget& bias);

}  // namespace braid::nn
