// Attention over sequences whose tokens context ranks share: keys and values go around the ring of ranks, and each
// rank's queries meet those of all tokens. No rank ever has the keys of a whole sequence.
//
// A causal rank with late tokens has more keys to meet than one with early tokens. So sequences are cut into 2n halves,
// and around the ring rank r has halves r and 2n - 1 - r (head and tail), which makes all ranks' work equal:
//
//   2 ranks               of the hidden state     around the ring
//   rank 0                half 0, half 1          half 0, half 3
//   rank 1                half 2, half 3          half 1, half 2
//
// The halves' queries and keys form blocks: earlier keys are seen by all queries, and in the diagonal block by causal
// order. Documents and windows cut blocks further; only the edge of a window needs a mask. Blocks are merged by the
// logarithms of their sums of exponentials. Source: Liu et al., "Ring Attention with Blockwise Transformers" (2023);
// Brandon et al., "Striped Attention" (2023), section 3, for the imbalance.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "braid/model/graph.h"
#include "braid/nn/context_group.h"

namespace braid::nn {

struct RingCall {
  int64_t heads = 1, kv_heads = 1;
  double scale = 0;  // factor of q . k; 0: 1 / sqrt(features of a head)
  model::Sees sees = model::Sees::Earlier;
  int64_t window = 0;       // as CoreCall::window
  at::Tensor documents_bt;  // of whole sequences; undefined: no documents
  Communicator* ranks = nullptr;
  RingKeys keys = RingKeys::GoAround;
};

// qkv_btf: this rank's part of the tokens, as for attention_core(). Returns the heads' outputs of the same tokens. All
// ranks call this, and run its backward, in the same order. 16-bit types go around as they are and are computed in
// float32. Throws CommError.
at::Tensor ring_attention(const at::Tensor& qkv_btf, const RingCall& call);

// Queries that meet keys. Places are tokens of the whole sequence. Each query sees at least one of the keys.
struct AttentionBlock {
  int64_t sequence = 0, num_sequences = 1;
  int64_t query = 0, num_queries = 0, key = 0, num_keys = 0;
  bool causal = false;  // as many queries as keys; query i sees keys 0 .. i
  int64_t window = 0;   // a query sees the newest `window` of the tokens up to itself; 0: as `causal` says

  bool operator==(const AttentionBlock&) const = default;
};

// Tokens begin .. end - 1 of each sequence.
struct TokenRange {
  int64_t begin, end;
};

// Returns the blocks between the queries of one half and the keys of another, in b sequences. The halves are the same
// or disjoint.
std::vector<AttentionBlock> blocks_between(const TokenRange& queries, const TokenRange& keys, int64_t b,
                                           const RingCall& call);

}  // namespace braid::nn
