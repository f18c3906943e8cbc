// The memory of capped attention on CPUs, head by head: rows of queries, keys and values, their gradients, and tiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "braid/nn/kernels/capped_attention.h"
#include "braid/nn/kernels/capped_rows.h"
#include "braid/nn/kernels/parallel_rows.h"
#include "braid/nn/kernels/processor.h"
#include "braid/nn/kernels/tile_product.h"

namespace braid::kernels {

// Rows of a head in the math type: the rows themselves, or a widened copy.
template <class T>
class HeadRows {
 public:
  using M = MathOf<T>;
  Tile<const M> widened(const T* rows, int64_t count, int64_t width, int64_t stride) {
    if constexpr (std::is_same_v<T, M>) return {rows, stride};
    copy_.resize(count * width);
    for (int64_t i = 0; i < count; ++i) {
      best_kernels<ElementCopyKernels<T>>().widen(rows + i * stride, width, copy_.data() + i * width);
    }
    return {copy_.data(), width};
  }

 private:
  std::vector<M> copy_;
};

// The heads of a tensor of sequences x tokens x (heads x features). T may be const.
template <class T>
struct Heads {
  Heads(const at::Tensor& x_btf, int64_t heads)
      : data(const_cast<T*>(x_btf.const_data_ptr<std::remove_const_t<T>>())),
        of_sequence(x_btf.stride(0)),
        of_token(x_btf.stride(1)),
        width(x_btf.size(2) / heads) {
    check(x_btf.is_cpu() && x_btf.stride(2) == 1, "capped attention reads heads one after another");
  }

  T* at(int64_t sequence, int64_t token, int64_t head) const {
    return data + sequence * of_sequence + token * of_token + head * width;
  }

  T* data;
  int64_t of_sequence, of_token, width;  // strides in elements; features of a head
};

// The sizes of a call, and its queries, keys and values.
template <class T>
struct CappedHeads {
  using M = MathOf<T>;
  Heads<const T> q, k, v;
  const int64_t *first, *end;
  int64_t b, t, s, heads, kv_heads, width;  // width: features of a head
  M cap, scale;

  CappedHeads(const CappedTensors& x, const CappedAttention& call)
      : q(x.q_btf, call.heads),
        k(x.k_bsf, call.kv_heads),
        v(x.v_bsf, call.kv_heads),
        first(read<int64_t>(call.first_bt)),
        end(read<int64_t>(call.end_bt)),
        b(x.q_btf.size(0)),
        t(x.q_btf.size(1)),
        s(x.k_bsf.size(1)),
        heads(call.heads),
        kv_heads(call.kv_heads),
        width(q.width),
        cap(static_cast<M>(call.cap)),
        scale(static_cast<M>(call.scale)) {}

  int64_t group() const { return heads / kv_heads; }
  // Returns the keys that some of a sequence's queries see.
  RowRange seen(int64_t sequence, const RowRange& queries) const {
    return {first[sequence * t + queries.begin], end[sequence * t + queries.end - 1]};
  }
};

// A range of queries and one of keys that some of these see.
struct TileRange {
  RowRange queries, keys;
  int64_t rows() const { return queries.end - queries.begin; }
  int64_t columns() const { return keys.end - keys.begin; }
};

// Writes the keys of the tile that each query of the sequence sees.
template <class T>
void write_seen(const CappedHeads<T>& a, int64_t sequence, const TileRange& tile, RowRange* seen) {
  for (int64_t i = tile.queries.begin; i < tile.queries.end; ++i) {
    const int64_t begin = std::clamp(a.first[sequence * a.t + i], tile.keys.begin, tile.keys.end);
    const int64_t end = std::clamp(a.end[sequence * a.t + i], begin, tile.keys.end);
    seen[i - tile.queries.begin] = {begin - tile.keys.begin, end - tile.keys.begin};
  }
}

// The gradients of the rows of a head: in the tensor itself, or in the math type until they are rounded.
template <class T>
class HeadGradient {
 public:
  using M = MathOf<T>;
  // `to` is the head's part of a tensor with rows of `stride` elements.
  void begin(T* to, int64_t count, int64_t width, int64_t stride) {
    to_ = to, count_ = count, width_ = width, stride_ = stride;
    if constexpr (!std::is_same_v<T, M>) sums_.assign(count * width, M(0));
    if constexpr (std::is_same_v<T, M>) {
      for (int64_t i = 0; i < count; ++i) std::fill_n(to + i * stride, width, M(0));
    }
  }
  Tile<M> from(int64_t token) {
    if constexpr (std::is_same_v<T, M>)
      return {to_ + token * stride_, stride_};
    else
      return {sums_.data() + token * width_, width_};
  }
  void end() {
    if constexpr (!std::is_same_v<T, M>) {
      for (int64_t i = 0; i < count_; ++i) {
        best_kernels<ElementCopyKernels<T>>().narrow(sums_.data() + i * width_, width_, M(1), to_ + i * stride_);
      }
    }
  }

 private:
  T* to_ = nullptr;
  int64_t count_ = 0, width_ = 0, stride_ = 0;
  std::vector<M> sums_;
};

}  // namespace braid::kernels
