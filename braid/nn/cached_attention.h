// The attention core of generation: new tokens attend to themselves and to the cached tokens of their sequence. Keys
// arrive rotated.
#pragma once

#include "braid/nn/activation.h"
#include "braid/nn/key_value_cache.h"

namespace braid::nn {

struct CachedCall {
  int64_t heads = 1, kv_heads = 1;
  int64_t window = 0;               // number of newest tokens that a token attends to, itself included; 0: all
  KeyValueCache::Place place = {};  // that of the layer in the cache
  double cap = 0, scale = 0;        // those of CoreCall
};

// Stores the keys and values of qkv_btf in `cache` and returns the heads' outputs, b x t x (heads x features). qkv_btf
// is as in attention_core(); its b x t tokens are those of the cache's current forward. CPU, no gradients. For a
// stretch of several tokens at the start of its sequence, the result equals that of attention_core() bit for bit. The
// bits of all other tokens depend only on their own sequence.
at::Tensor cached_attention(const at::Tensor& qkv_btf, const CachedCall& call, KeyValueCache& cache);

}  // namespace braid::nn
