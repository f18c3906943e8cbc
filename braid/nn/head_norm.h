// RMSNorm over each head's features, of queries and of keys, between their projection and their rotation. The weights
// are the same for all heads, and heads are split over the tensor axis, so backward sums the weights' gradients over
// it: after that they are, like those of other norms, the same on every tensor rank. Source: Henry et al., "Query-Key
// Normalization for Transformers" (2020); Yang et al., "Qwen3" (2025), section 2.
#pragma once

#include "braid/nn/block.h"
#include "braid/param/param_store.h"

namespace braid::nn {

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

}  // namespace braid::nn
