// Sizes that follow from a ModelSpec.
#pragma once

#include <algorithm>
#include <cstdint>

#include "braid/model/model_spec.h"

namespace braid::model {

// Returns model.kv_heads, or model.heads if that is 0.
int num_kv_heads(const ModelSpec& spec);
// Returns true if `ranks` tensor ranks can split the heads: each rank has whole groups of queries, or a part of one.
bool can_split_heads(const ModelSpec& spec, int ranks);
// Returns the parts into which `ranks` tensor ranks split the key heads. If it is less than `ranks`, neighbouring ranks
// hold copies of a key head and share its queries.
inline int key_head_parts(const ModelSpec& spec, int ranks) { return std::min(num_kv_heads(spec), ranks); }
// Returns the features of one head: model.head_width, or width / heads if that is 0.
int head_width(const ModelSpec& spec);
// Returns the tokens that a token of a full sequence attends to on average, if it sees earlier ones alone: half of the
// sequence, or less with a window (0: none).
double mean_tokens_seen(int context, int window);
// Returns model.ffn. If that is 0, returns the width that the family gives.
int ffn_width(const ModelSpec& spec);
// Returns the feed-forward branches that each token goes through: 1, or model.experts_per_token if there are experts.
inline int branches_per_token(const ModelSpec& spec) { return spec.experts > 0 ? spec.experts_per_token : 1; }
// Returns the number of parts into which cuts divide a layer (BlockGraph::cuts).
int parts_of_layer(const ModelSpec& spec);
// Returns the number of units that a model may be cut into: its embedding, the parts of its layers, and its head.
inline int num_units(const ModelSpec& spec) { return parts_of_layer(spec) * spec.layers + 2; }
// Returns vocab rounded up to a multiple of vocab_multiple * max(vocab_parts, tensor_size). REQUIRES: vocab is resolved
// (> 0).
int64_t padded_vocab(const ModelSpec& spec, int tensor_size);

}  // namespace braid::model
