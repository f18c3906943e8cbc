// The feed-forward branches: with GELU (GPT-2) and gated (Llama).
#pragma once

#include "braid/nn/linear.h"

namespace braid::nn {

// The gated feed-forward branch: gate and up in one product (column), silu(gate) * up, down (row). Source: Shazeer,
// "GLU Variants Improve Transformer" (2020), SwiGLU; split as in Shoeybi et al., "Megatron-LM" (2019), section 3.
//
//   x_btc -> gate_up: column, [gate | up] of this rank -> silu(gate) * up -> down: row -> btc
class GatedMlp {
 public:
  struct Options {
    ParallelLinearOptions gate_up;  // [2 f/n, c], f inner features on n ranks
    ParallelLinearOptions down;     // [c, f/n]
  };
  GatedMlp(const Options& options, const RankContext& rank)
      : gate_up_(options.gate_up, rank), down_(options.down, rank), keep_(rank.keep) {}
  // Returns btc, all-reduced over the tensor axis. Throws CommError.
  at::Tensor forward(const Activation& x_btc, const Microbatch& microbatch) const;

 private:
  ColumnParallelLinear gate_up_;
  RowParallelLinear down_;
  Keep keep_;
};

// Returns silu(g) * u of rows [g | u], where g and u have equal extents. The rows are contiguous and kept for backward,
// which overwrites them with their gradient. REQUIRES: nothing else reads the rows.
at::Tensor swiglu(const at::Tensor& gate_up_btf);

// The feed-forward branch: up (column), GELU in its tanh form, down (row). Source: Hendrycks & Gimpel, "GELU" (2016);
// split as in Shoeybi et al., "Megatron-LM" (2019), section 3.
class Mlp {
 public:
  struct Options {
    ParallelLinearOptions up;    // [f/n, c], f inner features on n ranks; with a bias
    ParallelLinearOptions down;  // [c, f/n]
  };
  Mlp(const Options& options, const RankContext& rank);
  // Returns btc, all-reduced over the tensor axis. Throws CommError.
  at::Tensor forward(const Activation& x_btc, const Microbatch& microbatch) const;

 private:
  ColumnParallelLinear up_;
  const param::Parameter* up_bias_;
  RowParallelLinear down_;
  RankContext rank_;
};

}  // namespace braid::nn
