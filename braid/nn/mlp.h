// The feed-forward branch: up (column), GELU in its tanh form, down (row).
// Source: Hendrycks & Gimpel, "GELU" (2016); cut as in Shoeybi et al., "Megatron-LM" (2019), section 3.
#pragma once

#include "braid/nn/parallel_linear.h"

namespace braid::nn {

class Mlp {
 public:
  struct Options {
    ParallelLinearOptions up;    // [f/n, c], f features inside, with a bias
    ParallelLinearOptions down;  // [c, f/n]
  };
  Mlp(const Options& options, const RankContext& rank);
  // btc, summed over the tensor ranks and the same on all of them. Throws CommError.
  at::Tensor forward(const Activation& x_btc, const Microbatch& microbatch) const;

 private:
  ColumnParallelLinear up_;
  const param::Parameter* up_bias_;
  RowParallelLinear down_;
  RankContext rank_;
};

}  // namespace braid::nn
