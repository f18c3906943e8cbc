// Two products, with norms, positions and the core between them.
#include "braid/nn/attention.h"

#include "braid/nn/attention_core.h"
#include "braid/nn/cached_attention.h"

namespace braid::nn {

at::Tensor Attention::forward(const Activation& x_btc, const Microbatch& microbatch) const {
  const int64_t h = options_.local_heads, k = options_.local_kv_heads > 0 ? options_.local_kv_heads : h;
  at::Tensor qkv_btf = qkv_.forward(x_btc, microbatch);
  if (options_.norms.query) qkv_btf = norm_heads_(qkv_btf, {options_.norms, h, k, microbatch.micro}, rank_);
  if (microbatch.cache) return cached_forward(qkv_btf, microbatch);
  if (options_.rotary) qkv_btf = options_.rotary->rotate_(qkv_btf, h + k);
  return projection_.forward(attention_core(qkv_btf, {h, k, microbatch.documents_bt, rank_.keep, options_.window}),
                             microbatch);
}

at::Tensor Attention::cached_forward(const at::Tensor& qkv_btf, const Microbatch& microbatch) const {
  const int64_t h = options_.local_heads, k = options_.local_kv_heads > 0 ? options_.local_kv_heads : h;
  if (options_.rotary) options_.rotary->rotate_at_(qkv_btf, h + k, microbatch.cache->places_n());
  const CachedCall call{.heads = h, .kv_heads = k, .window = options_.window, .layer = this};
  return projection_.forward(cached_attention(qkv_btf, call, *microbatch.cache), microbatch);
}

}  // namespace braid::nn
