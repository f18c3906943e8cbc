// Attention between the queries of some tokens and the keys of others, cut into blocks that LibTorch's kernel computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/model/graph.h"

namespace braid::nn {

// The tokens that a query sees.
struct SeenTokens {
  model::Sees sees = model::Sees::Earlier;
  int64_t window = 0;       // as CoreCall::window
  at::Tensor documents_bt;  // of whole sequences; undefined: no documents
};

// Neighbouring queries and keys of some sequences. Places count tokens of the whole sequence. Each query sees at least
// one of the keys.
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
                                           const SeenTokens& seen);

// Returns the scores' summands of a block at the edge of a window: 0 for keys that a query sees. Empty if all queries
// see all keys, or as `causal` says.
std::optional<at::Tensor> mask_of(const AttentionBlock& block, const at::TensorOptions& like);

}  // namespace braid::nn
