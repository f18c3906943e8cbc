// Normalisation by the root of the mean square over the last dim, on replicated activations: every tensor rank computes
// the same. Source: Zhang & Sennrich, "Root Mean Square Layer Normalization" (2019).
#pragma once

#include "braid/nn/residual_norm.h"

namespace braid::nn {

class RmsNorm {
 public:
  struct Options {
    const param::Parameter* weight = nullptr;  // [c]
    double eps = 1e-5;
  };
  RmsNorm(const Options& options, const RankContext& rank) : options_(options), rank_(rank) {}
  // btc, the same on every tensor rank: x / sqrt(mean x^2 + eps) * weight. Computed in float32 where x is narrower, and
  // rounded once. No communication.
  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) const;
  // The same fused with the residual stream: norm_residual and join_and_norm of residual_norm.h.
  Residual open(const at::Tensor& residual_btc, const Microbatch& microbatch) const;
  Residual join(const at::Tensor& residual_btc, const Branch& branch, const Microbatch& microbatch) const;

 private:
  NormCall call(const Microbatch& microbatch) const;

  Options options_;
  RankContext rank_;
};

}  // namespace braid::nn
