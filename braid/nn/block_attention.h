// Attention between the queries and the keys of one block (attention_blocks.h), on LibTorch's kernel or, with a cap, on
// braid's (kernels/capped_attention.h). CPU only.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/nn/attention_blocks.h"

namespace braid::nn {

// The cap and the scale of scores, as in CoreCall (attention.h).
struct ScoreForm {
  double cap = 0, scale = 0;
};

// The queries, keys and values of a block, or their gradients: sequences x heads x tokens x features. Several heads of
// queries may share one of keys and values.
struct BlockTensors {
  at::Tensor q, k, v;
};

// The heads' outputs, and the logarithm of each query's sum of exponentials, sequences x heads x tokens.
struct BlockOutput {
  at::Tensor y, log;
};

BlockOutput attend_block(const BlockTensors& x, const AttentionBlock& block, const ScoreForm& form);

// Returns the block's parts of the gradients, given the gradient dy of the outputs. `output` may be that of all blocks
// that a query meets, merged.
BlockTensors attend_block_backward(const BlockTensors& x, const BlockOutput& output, const at::Tensor& dy,
                                   const AttentionBlock& block, const ScoreForm& form);

}  // namespace braid::nn
