// The attention core of generation: new tokens of some sequences attend to themselves and to the cached tokens of their
// sequence. Keys arrive rotated.
#pragma once

#include "braid/nn/activation.h"
#include "braid/nn/key_value_cache.h"

namespace braid::nn {

struct CachedCall {
  int64_t heads = 1, kv_heads = 1;
  int64_t window = 0;           // places a token sees, its own included; 0: all
  const void* layer = nullptr;  // whose cache
};

// Caches the keys and values of qkv_btf (as in attention_core(); its b x t tokens are those of the forward that `cache`
// has at hand) and returns the heads' outputs, b x t x (heads x features). CPU, no gradients. A stretch of several
// tokens that begins its sequence gets the bits of attention_core() on that stretch; the bits of every other token
// depend on its own sequence only.
at::Tensor cached_attention(const at::Tensor& qkv_btf, const CachedCall& call, KeyValueCache& cache);

}  // namespace braid::nn
