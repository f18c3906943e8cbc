// What attention does between its two projections: heads of queries, keys and values to heads of outputs. It knows no
// parameter.
#pragma once

#include "braid/nn/activation.h"
#include "braid/nn/block.h"

namespace braid {

struct CoreCall {
  int64_t heads = 1, kv_heads = 1;
  at::Tensor documents_bt;  // of the microbatch
  Keep keep = Keep::Everything;
};

// qkv_btf: rows of [queries | keys | values], heads by heads. Returns the heads' outputs, b x t x (heads x features).
// Keep::Everything keeps qkv, the outputs and the statistics of their rows; Keep::Selected keeps qkv alone: backward
// runs the core once more, and both the product behind it and the core's own gradient use that run.
Activation attention_core(const at::Tensor& qkv_btf, const CoreCall& call);

}  // namespace braid
