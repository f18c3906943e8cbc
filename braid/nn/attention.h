// Causal self-attention with its heads split over the tensor axis, and the projections around it.
// Source: Vaswani et al., "Attention Is All You Need" (2017); cut as in Shoeybi et al., "Megatron-LM" (2019),
// section 3. No position encoding and no dropout on probabilities (dropout.h says why).
//
//   x_btc -> qkv: column, [q heads | k heads | v heads] of this rank -> attention per head -> projection: row -> btc
#pragma once

#include "braid/nn/parallel_linear.h"

namespace braid {

class Attention {
 public:
  struct Options {
    ParallelLinearOptions qkv;         // [3 c/n, c]
    ParallelLinearOptions projection;  // [c, c/n]
    int local_heads = 1;               // of this rank
  };
  Attention(const Options& options, const RankContext& rank)
      : local_heads_(options.local_heads), qkv_(options.qkv, rank), projection_(options.projection, rank) {}
  // btc, summed over the tensor ranks and the same on all of them. Throws CommError.
  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) const;

 private:
  int local_heads_;
  ColumnParallelLinear qkv_;
  RowParallelLinear projection_;
};

}  // namespace braid
