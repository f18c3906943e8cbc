// Normalisation layers: LayerNorm and RMSNorm of the hidden state, and RMSNorm of the query and key heads.
#pragma once

#include "braid/nn/block.h"
#include "braid/nn/residual_norm.h"
#include "braid/param/param_store.h"

namespace braid::nn {

// RMSNorm over each head's features, of queries and of keys, between their projection and their rotation. All heads
// have the same weights, and heads are split over the tensor axis. So backward all-reduces the weights' gradients over
// that axis, and afterwards they are the same on every tensor rank, like those of other norms. Source: Henry et al.,
// "Query-Key Normalization for Transformers" (2020); Yang et al., "Qwen3" (2025), section 2.
struct HeadNorms {
  const param::Parameter* query = nullptr;  // [d], where a head has d features; null: no norm
  const param::Parameter* key = nullptr;    // [d]
  double eps = 1e-5;
};

struct HeadNormCall {
  HeadNorms norms;
  int64_t heads = 1, kv_heads = 1;  // numbers of heads on this rank
  int micro = 0;
};

// Normalises the query and key heads in qkv_btf, rows of [queries | keys | values], in place. Keeps the original
// queries and keys for backward, also with Keep::Selected, because the norm's gradient reads them. REQUIRES: qkv_btf is
// contiguous and no view, and no backward has saved it.
at::Tensor norm_heads_(const at::Tensor& qkv_btf, const HeadNormCall& call, const RankContext& rank);

// Normalisation over the last dim of replicated activations: every tensor rank computes the same result. Sources: Ba et
// al., "Layer Normalization" (2016); Zhang & Sennrich, "Root Mean Square Layer Normalization" (2019).
class Norm {
 public:
  struct Options {
    const param::Parameter* weight = nullptr;  // [c]
    const param::Parameter* bias = nullptr;    // [c], Layer only
    double eps = 1e-5;
    kernels::NormKind kind = kernels::NormKind::Layer;
  };
  Norm(const Options& options, const RankContext& rank) : options_(options), rank_(rank) {}
  // Returns btc, the same on every tensor rank. Layer: (x - mean) / sqrt(var + eps) * weight + bias. Rms: x / sqrt(mean
  // x^2 + eps) * weight. The arithmetic is float32 if x is narrower, with one rounding at the end. No communication.
  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) const;
  // Normalise, fused with the residual stream: norm_residual() and join_and_norm() of residual_norm.h.
  Residual open(const at::Tensor& residual_btc, const Microbatch& microbatch) const;
  Residual join(const at::Tensor& residual_btc, const Branch& branch, const Microbatch& microbatch) const;

 private:
  NormCall call(const Microbatch& microbatch) const;

  Options options_;
  RankContext rank_;
};

}  // namespace braid::nn
