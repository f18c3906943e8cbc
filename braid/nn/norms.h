// Layers that normalise: LayerNorm and RMSNorm of the hidden state, and RMSNorm of the query and key heads.
#pragma once

#include "braid/nn/block.h"
#include "braid/nn/residual_norm.h"
#include "braid/param/param_store.h"

namespace braid::nn {

// RMSNorm over each head's features, of queries and of keys, between their projection and their rotation. The weights
// are the same for all heads, and heads are split over the tensor axis, so backward sums the weights' gradients over
// it: after that they are, like those of other norms, the same on every tensor rank. Source: Henry et al., "Query-Key
// Normalization for Transformers" (2020); Yang et al., "Qwen3" (2025), section 2.
struct HeadNorms {
  const param::Parameter* query = nullptr;  // [d], of d features of a head; null: no norm
  const param::Parameter* key = nullptr;    // [d]
  double eps = 1e-5;
};

struct HeadNormCall {
  HeadNorms norms;
  int64_t heads = 1, kv_heads = 1;  // of this rank
  int micro = 0;
};

// Normalises the query and key heads in qkv_btf, rows of [queries | keys | values], in place. qkv_btf: contiguous, no
// view; nothing may have saved it. Keeps queries and keys as they were for backward, with Keep::Selected too: the
// norm's gradient reads them.
at::Tensor norm_heads_(const at::Tensor& qkv_btf, const HeadNormCall& call, const RankContext& rank);

// Normalisation over the last dim, on replicated activations: every tensor rank computes the same. Sources: Ba et al.,
// "Layer Normalization" (2016); Zhang & Sennrich, "Root Mean Square Layer Normalization" (2019).
class Norm {
 public:
  struct Options {
    const param::Parameter* weight = nullptr;  // [c]
    const param::Parameter* bias = nullptr;    // [c], Layer only
    double eps = 1e-5;
    kernels::NormKind kind = kernels::NormKind::Layer;
  };
  Norm(const Options& options, const RankContext& rank) : options_(options), rank_(rank) {}
  // btc, the same on every tensor rank. Layer: (x - mean) / sqrt(var + eps) * weight + bias. Rms: x / sqrt(mean x^2 +
  // eps) * weight. Computed in float32 where x is narrower, and rounded once. No communication.
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
