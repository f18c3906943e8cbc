// The attention core of generation: new tokens of some sequences see themselves and what is cached of their sequence.
// It knows no parameter and no positions: keys come turned.
#pragma once

#include "braid/nn/activation.h"
#include "braid/nn/key_value_cache.h"

namespace braid {

struct CachedCall {
  int64_t heads = 1, kv_heads = 1;
  int64_t window = 0;           // places a token sees, its own included; 0: all
  const void* layer = nullptr;  // whose cache
};

// qkv_btf: as in attention_core(), of the forward that `cache` has at hand. Caches keys and values, and returns the
// heads' outputs, b x t x (heads x features). Without gradients, on CPUs. What is new to a token's sequence in this
// forward decides how it is computed: sequences that begin here are what attention_core() makes of them, bit by bit;
// for the others, a token's bits depend on its sequence alone.
at::Tensor cached_attention(const at::Tensor& qkv_btf, const CachedCall& call, KeyValueCache& cache);

}  // namespace braid
