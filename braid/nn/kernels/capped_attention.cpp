// The tiles of capped attention. A tile has the scores of some queries of one head with some keys.
//
//   forward    for each tile:  P = exp(cap tanh(scale / cap Q K^T)),  Y += P V;    Y /= row sums of P
//   backward   for each tile:  P as above / row sums,  dP = dY V^T,  dS = P (dP - dY . Y) (1 - tanh^2)
//                              dV += P^T dY,  dQ += scale dS K,  dK += scale dS^T Q
//
// Where bfloat16 has products of its own, dV and dK are summed by these, from rounded P and dS. Threads divide forward
// by heads and blocks of queries, and backward by key heads, whose gradients they add in order.
#include "braid/nn/kernels/capped_attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "braid/nn/kernels/capped_rows.h"
#include "braid/nn/kernels/capped_tiles.h"
#include "braid/nn/kernels/parallel_rows.h"
#include "braid/nn/kernels/processor.h"
#include "braid/nn/kernels/product_bf16.h"
#include "braid/nn/kernels/tile_product.h"

namespace braid::kernels {
namespace {

constexpr int64_t kKeys = 512;  // keys of a tile
// Queries of a tile. Fewer compute fewer scores that the causal mask hides; more multiply faster.
constexpr int64_t queries_of_tile(int64_t t) { return t >= 768 ? 128 : t >= 192 ? 64 : 32; }

// The work of one thread in forward.
template <class T>
class Forward {
 public:
  using M = MathOf<T>;
  Forward(const CappedHeads<T>& problem, T* y, M* norms)
      : a_(problem),
        y_(y),
        norms_(norms),
        queries_(queries_of_tile(a_.t)),
        scores_(queries_ * std::min(kKeys, a_.t)),
        sums_of_values_(queries_ * a_.width),
        seen_(queries_) {}

  void run(int64_t sequence, int64_t head, int64_t first) {
    const RowRange queries{first, std::min(first + queries_, a_.t)};
    const int64_t rows = queries.end - first, kv = head / a_.group();
    const int64_t* first_seen = a_.first_seen + sequence * a_.t;
    const auto q = q_.widened(a_.qkv + a_.q_at(sequence, first, head), rows, a_.width, a_.row());
    std::vector<M> sums(rows, M(0));
    bool begun = false;
    for (int64_t key = first_seen[first]; key < queries.end; key += kKeys, begun = true) {
      const TileRange tile{queries, {key, std::min(key + kKeys, queries.end)}};
      const int64_t columns = tile.columns();
      const auto k = k_.widened(a_.qkv + a_.k_at(sequence, key, kv), columns, a_.width, a_.row());
      multiply(TileProduct<M>{rows,
                              columns,
                              a_.width,
                              a_.scale / a_.cap,
                              q,
                              TileForm::Plain,
                              k,
                              TileForm::Transposed,
                              M(0),
                              {scores_.data(), columns}});
      write_seen(first_seen, tile, seen_.data());
      best_kernels<CappedScoreKernels<M>>().exponentials({scores_.data(), rows, columns, seen_.data(), a_.cap},
                                                         sums.data());
      const auto v = k_.widened(a_.qkv + a_.v_at(sequence, key, kv), columns, a_.width, a_.row());
      multiply(TileProduct<M>{rows,
                              a_.width,
                              columns,
                              M(1),
                              {scores_.data(), columns},
                              TileForm::Plain,
                              v,
                              TileForm::Plain,
                              M(begun ? 1 : 0),
                              {sums_of_values_.data(), a_.width}});
    }
    for (int64_t i = 0; i < rows; ++i) {
      T* const y = y_ + a_.y_at(sequence, first + i, head);
      best_kernels<ElementCopyKernels<T>>().narrow(sums_of_values_.data() + i * a_.width, a_.width, 1 / sums[i], y);
      norms_[(sequence * a_.heads + head) * a_.t + first + i] = std::log(sums[i]);
    }
  }

 private:
  const CappedHeads<T>& a_;
  T* const y_;
  M* const norms_;
  const int64_t queries_;
  std::vector<M> scores_, sums_of_values_;
  std::vector<RowRange> seen_;
  HeadRows<T> q_, k_;
};

// The work of one thread in backward.
template <class T>
class Backward {
 public:
  using M = MathOf<T>;
  struct Tensors {
    const T *y, *dy;
    const M* norms;
    T* dqkv;
  };
  Backward(const CappedHeads<T>& problem, const Tensors& tensors)
      : a_(problem),
        x_(tensors),
        queries_(queries_of_tile(a_.t)),
        scores_(queries_ * std::min(kKeys, a_.t)),
        dscores_(scores_.size()),
        seen_(queries_) {}

  // Computes the gradients of a key and value head and of its queries.
  void run(int64_t sequence, int64_t kv) {
    dk_.begin(x_.dqkv + a_.k_at(sequence, 0, kv), a_.t, a_.width, a_.row());
    dv_.begin(x_.dqkv + a_.v_at(sequence, 0, kv), a_.t, a_.width, a_.row());
    for (int64_t head = kv * a_.group(); head < (kv + 1) * a_.group(); ++head) {
      dq_.begin(x_.dqkv + a_.q_at(sequence, 0, head), a_.t, a_.width, a_.row());
      write_deltas(sequence, head);
      for (int64_t key = 0; key < a_.t; key += kKeys) {
        const RowRange keys{key, std::min(key + kKeys, a_.t)};
        const int64_t columns = keys.end - key;
        const auto k = k_rows_.widened(a_.qkv + a_.k_at(sequence, key, kv), columns, a_.width, a_.row());
        const auto v = v_rows_.widened(a_.qkv + a_.v_at(sequence, key, kv), columns, a_.width, a_.row());
        add_keys(sequence, head, keys, k, v);
      }
      dq_.end();
    }
    dk_.end(), dv_.end();
  }

 private:
  // Writes dy . y of each of the head's rows.
  void write_deltas(int64_t sequence, int64_t head) {
    deltas_.assign(a_.t, M(0));
    for (int64_t i = 0; i < a_.t; ++i) {
      const int64_t at = a_.y_at(sequence, i, head);
      for (int64_t j = 0; j < a_.width; ++j) deltas_[i] += static_cast<M>(x_.dy[at + j]) * static_cast<M>(x_.y[at + j]);
    }
  }

  void add_keys(int64_t sequence, int64_t head, const RowRange& keys, Tile<const M> k, Tile<const M> v) {
    const int64_t* first_seen = a_.first_seen + sequence * a_.t;
    for (int64_t first = keys.begin / queries_ * queries_; first < a_.t; first += queries_) {
      TileRange tile{{first, std::min(first + queries_, a_.t)}, keys};
      if (first_seen[first] >= keys.end) break;
      tile.keys.end = std::min(tile.keys.end, tile.queries.end);
      write_seen(first_seen, tile, seen_.data());
      add_tile(sequence, head, tile, k, v);
    }
  }

  void add_tile(int64_t sequence, int64_t head, const TileRange& tile, Tile<const M> k, Tile<const M> v) {
    const int64_t rows = tile.rows(), columns = tile.columns(), first = tile.queries.begin, key = tile.keys.begin;
    const int64_t width = a_.width, y_row = a_.heads * width;
    const auto q = q_rows_.widened(a_.qkv + a_.q_at(sequence, first, head), rows, width, a_.row());
    const auto dy = dy_rows_.widened(x_.dy + a_.y_at(sequence, first, head), rows, width, y_row);
    constexpr auto kPlain = TileForm::Plain, kTransposed = TileForm::Transposed;
    const Tile<M> p{scores_.data(), columns}, ds{dscores_.data(), columns};
    const Tile<const M> of_p{p.data, columns}, of_ds{ds.data, columns};
    multiply(TileProduct<M>{rows, columns, width, a_.scale / a_.cap, q, kPlain, k, kTransposed, M(0), p});
    multiply(TileProduct<M>{rows, columns, width, M(1), dy, kPlain, v, kTransposed, M(0), ds});
    const M* norms = x_.norms + (sequence * a_.heads + head) * a_.t + first;
    best_kernels<CappedScoreKernels<M>>().gradient({p.data, rows, columns, seen_.data(), a_.cap},
                                                   {ds.data, norms, deltas_.data() + first});
    multiply(TileProduct<M>{rows, width, columns, a_.scale, of_ds, kPlain, k, kPlain, M(1), dq_.from(first)});
    if (std::is_same_v<T, c10::BFloat16> && has_product_bf16()) {
      add_narrow(tile, scores_, M(1), {x_.dy + a_.y_at(sequence, first, head), y_row}, dv_.from(key));
      add_narrow(tile, dscores_, a_.scale, {a_.qkv + a_.q_at(sequence, first, head), a_.row()}, dk_.from(key));
    } else {
      multiply(TileProduct<M>{columns, width, rows, M(1), of_p, kTransposed, dy, kPlain, M(1), dv_.from(key)});
      multiply(TileProduct<M>{columns, width, rows, a_.scale, of_ds, kTransposed, q, kPlain, M(1), dk_.from(key)});
    }
  }

  // Adds factor scores^T x to contiguous rows, by bfloat16 products.
  void add_narrow(const TileRange& tile, const std::vector<M>& scores, M factor, Tile<const T> x, Tile<M> to) {
    if constexpr (std::is_same_v<T, c10::BFloat16>) {
      const int64_t rows = tile.rows(), columns = tile.columns();
      narrow_.resize(scores_.size());
      best_kernels<ElementCopyKernels<T>>().narrow(scores.data(), rows * columns, factor, narrow_.data());
      const auto bits = [](const T* p) { return reinterpret_cast<const uint16_t*>(p); };
      product_bf16({{bits(narrow_.data()), columns}, {bits(x.data), x.stride}, rows, columns, a_.width, 1, to.data});
    }
  }

  const CappedHeads<T>& a_;
  const Tensors x_;
  const int64_t queries_;
  std::vector<M> scores_, dscores_, deltas_;
  std::vector<T> narrow_;
  std::vector<RowRange> seen_;
  HeadRows<T> q_rows_, dy_rows_, k_rows_, v_rows_;
  HeadGradient<T> dq_, dk_, dv_;
};

}  // namespace

CappedOutput capped_attention(const at::Tensor& qkv_btf, const CappedAttention& call) {
  check(0 < call.cap && call.cap <= kMostCap,
        "a cap of attention scores whose exponentials neither overflow nor vanish");
  CappedOutput output;
  with_type(qkv_btf, [&](auto zero) {
    using T = decltype(zero);
    const CappedHeads<T> a(qkv_btf, call);
    output.y_btf = at::empty({a.b, a.t, a.heads * a.width}, qkv_btf.options());
    output.norm_bht = at::empty({a.b, a.heads, a.t}, qkv_btf.options().dtype(math_type(qkv_btf)));
    const int64_t queries = queries_of_tile(a.t), blocks = (a.t + queries - 1) / queries;
    T* const y = write<T>(output.y_btf);
    MathOf<T>* const norms = write<MathOf<T>>(output.norm_bht);
    at::parallel_for(0, a.b * a.heads * blocks, 1, [&](int64_t begin, int64_t end) {
      Forward<T> forward(a, y, norms);
      for (int64_t i = begin; i < end; ++i) {
        forward.run(i / blocks / a.heads, i / blocks % a.heads, i % blocks * queries);
      }
    });
  });
  return output;
}

at::Tensor capped_attention_backward(const at::Tensor& qkv_btf, const CappedAttention& call, const CappedOutput& output,
                                     const at::Tensor& dy_btf) {
  const at::Tensor dqkv = at::empty_like(qkv_btf), dy = dy_btf.contiguous();
  with_type(qkv_btf, [&](auto zero) {
    using T = decltype(zero);
    const CappedHeads<T> a(qkv_btf, call);
    const typename Backward<T>::Tensors tensors{read<T>(output.y_btf), read<T>(dy), read<MathOf<T>>(output.norm_bht),
                                                write<T>(dqkv)};
    at::parallel_for(0, a.b * a.kv_heads, 1, [&](int64_t begin, int64_t end) {
      Backward<T> backward(a, tensors);
      for (int64_t i = begin; i < end; ++i) backward.run(i / a.kv_heads, i % a.kv_heads);
    });
  });
  return dqkv;
}

}  // namespace braid::kernels
