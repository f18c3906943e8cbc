// Normalisation by the root of the mean square over the last dim, on replicated activations: every tensor rank computes
// the same. It knows no model.
// Source: Zhang & Sennrich, "Root Mean Square Layer Normalization" (2019).
#pragma once

#include "braid/nn/weight_grads.h"

namespace braid {

class RmsNorm {
 public:
  struct Options {
    const Parameter* weight = nullptr;  // [c]
    double eps = 1e-5;
  };
  RmsNorm(const Options& options, const RankContext& rank) : options_(options), rank_(rank) {}
  // btc, the same on every tensor rank: x / sqrt(mean x^2 + eps) * weight. Computed in float32 where x is narrower, and
  // rounded once. No communication.
  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) const;

 private:
  Options options_;
  RankContext rank_;
};

}  // namespace braid
