// Attention between its two projections: heads of queries, keys and values to heads of outputs.
#pragma once

#include "braid/nn/activation.h"
#include "braid/nn/block.h"

namespace braid::nn {

struct CoreCall {
  int64_t heads = 1, kv_heads = 1;
  at::Tensor documents_bt;  // of the microbatch
  Keep keep = Keep::Everything;
  int64_t window = 0;  // newest tokens that a token sees, itself among them; 0: all of its past
};

// qkv_btf: rows of [queries | keys | values], heads by heads. Returns the heads' outputs, b x t x (heads x features).
// Keep::Everything keeps qkv, the outputs and the statistics of their rows; Keep::Selected keeps qkv alone: backward
// runs the core once more, and both the product behind it and the core's own gradient use that run.
//
// With a window w, queries come in runs of w tokens, each against the 2 w - 1 keys that it sees under a mask: 2 w
// scores are formed for a token that needs w, whatever the sequence's length. A sequence of at most w tokens has no
// mask. Source: Beltagy et al., "Longformer" (2020), section 3.1; Jiang et al., "Mistral 7B" (2023), section 2.
Activation attention_core(const at::Tensor& qkv_btf, const CoreCall& call);

}  // namespace braid::nn
