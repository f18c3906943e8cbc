// The products of the model: y = x W^T + b as a custom autograd Function that gives dX at once and leaves dW and db on
// the weight-gradient queue.
//
// Parameters take part in the graph (so that there is one when x needs no gradient) but their .grad stays undefined.
// With gradients disabled nothing is saved and nothing is queued. x and the parameters have one dtype, float32,
// float64, bfloat16 or float16; the queued products are summed in the slots' type (weight_grads.h).
#pragma once

#include "braid/nn/activation.h"
#include "braid/nn/weight_grads.h"

namespace braid::nn {

enum class Rows {
  Together,  // by LibTorch
  Each,      // by kernels/row_product.h, without autograd: for the few rows of new tokens in generation
};
// Chooses the product for a layer's input, [.., b, t, i].
Rows rows_of(const at::Tensor& x, const Microbatch& microbatch);

struct LinearCall {
  ParamUse weight;                         // [o, i]
  const param::Parameter* bias = nullptr;  // [o], or none
  param::WeightGradQueue* queue = nullptr;
  int micro = 0;
  Rows rows = Rows::Together;
};

// x: any dims, the last is i. Returns the same dims with the last o, contiguous. An x that can be made again (x.again)
// is not kept: backward makes it, and the queue holds it from then until it has run.
at::Tensor linear(const Activation& x, const LinearCall& call);

// y += bias over the last dim, in place, for a bias that comes after a reduction. Nothing may have saved y.
at::Tensor add_bias_(const at::Tensor& y, const GradTarget& bias);

// Linear layers cut over the tensor axis. They know their own slices of W, no placement and no model.
//
//   column: W's rows (outputs) are split          row: W's columns (inputs) are split
//     x replicated -> y split along its last dim    x split along its last dim -> y replicated
//
// Source: Shoeybi et al., "Megatron-LM" (2019), section 3.
struct ParallelLinearOptions {
  ParamUse weight;                         // this rank's slice, [o, i]
  const param::Parameter* bias = nullptr;  // column: [o], this rank's slice; row: replicated
};

class ColumnParallelLinear {
 public:
  ColumnParallelLinear(const ParallelLinearOptions& options, const RankContext& rank)
      : options_(options), rank_(rank) {}
  // x: [.., i], the same on all ranks. Returns [.., o]. Backward sums dX over the tensor axis.
  at::Tensor forward(const Activation& x, const Microbatch& microbatch) const;

 private:
  ParallelLinearOptions options_;
  RankContext rank_;
};

class RowParallelLinear {
 public:
  RowParallelLinear(const ParallelLinearOptions& options, const RankContext& rank) : options_(options), rank_(rank) {}
  // x: [.., i], this rank's slice. Returns [.., o], the same on all ranks: the bias is added once, after the sum.
  at::Tensor forward(const Activation& x, const Microbatch& microbatch) const;

 private:
  ParallelLinearOptions options_;
  RankContext rank_;
};

}  // namespace braid::nn
