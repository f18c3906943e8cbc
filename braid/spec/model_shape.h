// Sizes that follow from a ModelSpec.
#pragma once

#include <cstdint>
#include <iterator>

#include "braid/spec/model_spec.h"

namespace braid::spec {

// The properties of a family's blocks, by its row in model_shape.cpp.
enum class FeedForward { Plain, Gated };     // two matrices, in and out; or three, gate, up and down
enum class KeyHeads { OfEachHead, Shared };  // Shared: by groups of heads, where model.kv_heads says so
enum class PositionKind { Learned, Rotary };
enum class HeadForm { Fixed, Free };  // Free: model.head_width, qkv_bias, qk_norm and window say what heads do
struct FamilyTraits {
  FeedForward feed_forward;
  KeyHeads key_heads;
  PositionKind positions;
  HeadForm heads;
};
FamilyTraits traits_of(ModelFamily family);

// model.kv_heads, or model.heads where it is 0.
int num_kv_heads(const ModelSpec& spec);
// Features of one head: model.head_width, or where it is 0 width / heads.
int head_width(const ModelSpec& spec);
// Tokens that a token sees on average in a full sequence: half of it, or less where model.window ends its view.
double mean_tokens_seen(const ModelSpec& spec);
// model.ffn, or where it is 0: 4 x width (gpt2), 8/3 x width rounded up to a multiple of 64 (llama).
int ffn_width(const ModelSpec& spec);
// Feed-forward branches that each token goes through: 1, or model.experts_per_token where there are experts.
inline int branches_per_token(const ModelSpec& spec) { return spec.experts > 0 ? spec.experts_per_token : 1; }
// Returns the number of units that a model may be cut into: its embedding, the two halves of each of `layers`
// transformer blocks, and its head.
inline int num_units(int layers) { return 2 * layers + 2; }
// vocab, which is resolved (> 0), rounded up to a multiple of vocab_multiple * tensor_size.
int64_t padded_vocab(const ModelSpec& spec, int tensor_size);

}  // namespace braid::spec
