// Linear layers cut over the tensor axis. They know their own slices of W, no placement and no model.
//
//   column: W's rows (outputs) are split          row: W's columns (inputs) are split
//     x replicated -> y split along its last dim    x split along its last dim -> y replicated
//
// Source: Shoeybi et al., "Megatron-LM" (2019), section 3.
#pragma once

#include "braid/nn/linear.h"

namespace braid::nn {

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
