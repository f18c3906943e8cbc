// Attention over the key-value cache. Threads divide the (new token, key-value head) pairs among themselves.
#include "braid/nn/cached_attention.h"

#include <algorithm>
#include <vector>

#include "braid/nn/attention.h"
#include "braid/nn/kernels/generation_rows.h"
#include "braid/nn/kernels/parallel_rows.h"
#include "braid/nn/kernels/processor.h"

namespace braid::nn {
namespace {

using kernels::MathOf;

constexpr int64_t kGrainElements = 1 << 15;  // elements of keys and values that justify a thread

// Pointers to the new tokens' rows and to a layer's cache, and their sizes.
template <class T>
struct CachedRows {
  const T* qkv;  // [n, (h + 2 k) d]
  T *keys, *values;
  int64_t heads, kv_heads, width;  // d
  int64_t blocks, context;         // key blocks of a sequence; positions of a sequence
  const int64_t *sequences_n, *places_n;

  int64_t sequence(int64_t row) const { return sequences_n[row]; }
  int64_t place(int64_t row) const { return places_n[row]; }
  const T* row_begin(int64_t row) const { return qkv + row * (heads + 2 * kv_heads) * width; }
  T* keys_of(int64_t row, int64_t head) const {
    return keys + (sequence(row) * kv_heads + head) * blocks * width * kernels::kKeyBlock;
  }
  T* values_of(int64_t row, int64_t head) const {
    return values + (sequence(row) * kv_heads + head) * context * kernels::value_width(width);
  }
};

template <class T>
void store_row(const CachedRows<T>& a, int64_t row) {
  const int64_t p = a.place(row), block = kernels::kKeyBlock;
  for (int64_t head = 0; head < a.kv_heads; ++head) {
    const T* key = a.row_begin(row) + (a.heads + head) * a.width;
    T* keys = a.keys_of(row, head) + p / block * a.width * block + p % block;
    for (int64_t f = 0; f < a.width; ++f) keys[f * block] = key[f];
    const T* value = key + a.kv_heads * a.width;
    std::copy(value, value + a.width, a.values_of(row, head) + p * kernels::value_width(a.width));
  }
}

// Writes the outputs of the row's queries that share key and value head `head` into y_nhd.
template <class T>
void attend_head(const CachedRows<T>& a, const CachedCall& call, int64_t row, int64_t head, T* y_nhd) {
  const int64_t group = a.heads / a.kv_heads;
  const int64_t end = a.place(row) + 1, begin = call.window > 0 ? std::max<int64_t>(0, end - call.window) : 0;
  std::vector<MathOf<T>> scores(static_cast<size_t>(a.blocks * kernels::kKeyBlock));
  for (int64_t query = head * group; query < (head + 1) * group; ++query) {
    kernels::best_kernels<kernels::GenerationKernels<T>>().attend(
        {a.row_begin(row) + query * a.width, a.keys_of(row, head), a.values_of(row, head),
         y_nhd + (row * a.heads + query) * a.width, a.width, begin, end,
         static_cast<MathOf<T>>(score_scale(call.scale, a.width)), static_cast<MathOf<T>>(call.cap), scores.data()});
  }
}

template <class T>
void attend_rows(const CachedRows<T>& a, const CachedCall& call, const std::vector<int64_t>& rows, T* y_nhd) {
  int64_t longest = 1;
  for (const int64_t row : rows) longest = std::max(longest, a.place(row) + 1);
  const int64_t grain = std::max<int64_t>(1, kGrainElements / (2 * longest * a.width));
  at::parallel_for(0, std::ssize(rows) * a.kv_heads, grain, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      attend_head(a, call, rows[static_cast<size_t>(item / a.kv_heads)], item % a.kv_heads, y_nhd);
    }
  });
}

// Computes with attention_core() the stretches that begin their sequences and have several tokens. Returns the rows of
// all other stretches.
std::vector<int64_t> attend_beginnings(const at::Tensor& qkv_1nf, const CachedCall& call, const KeyValueCache& cache,
                                       const at::Tensor& y_1nf) {
  std::vector<int64_t> others;
  int64_t first = 0;
  for (const auto& [sequence, count] : cache.stretches()) {
    if (cache.length(sequence) == 0 && count > 1) {
      const CoreCall core{call.heads, call.kv_heads, {}, Keep::Everything, call.window, call.cap, call.scale};
      y_1nf.narrow(1, first, count).copy_(attention_core(qkv_1nf.narrow(1, first, count), core).value);
    } else {
      for (int64_t row = first; row < first + count; ++row) others.push_back(row);
    }
    first += count;
  }
  return others;
}

}  // namespace

at::Tensor cached_attention(const at::Tensor& qkv_btf, const CachedCall& call, KeyValueCache& cache) {
  const int64_t b = qkv_btf.size(0), t = qkv_btf.size(1), h = call.heads, k = call.kv_heads;
  check(b * t == cache.num_tokens(), "the forward that was begun");
  const int64_t width = qkv_btf.size(2) / (h + 2 * k);
  const KeyValueCache::Layer& layer = cache.layer(call.place, {k, width, qkv_btf.options()});
  const at::Tensor y_btf = at::empty({b, t, h * width}, qkv_btf.options());
  const std::vector<int64_t> others =
      attend_beginnings(qkv_btf.view({1, b * t, -1}), call, cache, y_btf.view({1, b * t, -1}));
  kernels::with_type(qkv_btf, [&](auto zero) {
    using T = decltype(zero);
    const CachedRows<T> rows{qkv_btf.const_data_ptr<T>(),
                             layer.keys_skpdp.mutable_data_ptr<T>(),
                             layer.values_sktd.mutable_data_ptr<T>(),
                             h,
                             k,
                             width,
                             layer.keys_skpdp.size(2),
                             layer.values_sktd.size(2),
                             cache.sequences_n().const_data_ptr<int64_t>(),
                             cache.places_n().const_data_ptr<int64_t>()};
    for (int64_t row = 0; row < b * t; ++row) store_row(rows, row);
    attend_rows(rows, call, others, y_btf.mutable_data_ptr<T>());
  });
  return y_btf;
}

}  // namespace braid::nn
