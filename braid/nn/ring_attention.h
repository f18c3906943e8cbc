// Attention over sequences whose tokens are split over context ranks: keys and values go around the ring of ranks, and
// each rank's queries meet those of all tokens. A rank has the keys of at most two others at a time, unless it gathers
// all of them (RingKeys::Gathered).
//
// Each rank has two halves of the sequences (ring_halves.h), whose queries and keys form blocks (attention_blocks.h):
// earlier keys are seen by all queries, and in the diagonal block by causal order. Documents and windows cut blocks
// further; only the edge of a window needs a mask. Blocks are merged by the logarithms of their sums of exponentials.
// Source: Liu et al., "Ring Attention with Blockwise Transformers" (2023); Brandon et al., "Striped Attention" (2023),
// section 3, for the imbalance.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "braid/comm/op_name.h"
#include "braid/nn/block_attention.h"
#include "braid/nn/context_group.h"

namespace braid::nn {

struct RingCall {
  int64_t heads = 1, kv_heads = 1;
  ScoreForm scores;
  SeenTokens seen;
  Communicator* ranks = nullptr;
  RingKeys keys = RingKeys::GoAround;
  comm::OpName name = comm::CallName::current().backward();  // of the calls of backward
};

// qkv_btf: this rank's part of the tokens, as for attention_core(). Returns the heads' outputs of the same tokens. All
// ranks call this, and run its backward, in the same order. 16-bit types go around as they are and are computed in
// float32. Throws CommError.
at::Tensor ring_attention(const at::Tensor& qkv_btf, const RingCall& call);

}  // namespace braid::nn
