// RMSNorm of the query and key heads.
#pragma once

#include "braid/nn/block.h"

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

}  // namespace braid::nn
