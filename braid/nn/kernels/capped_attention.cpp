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
  Forward(const CappedHeads<T>& problem, const Heads<T>& y, M* norms)
      : a_(problem),
        y_(y),
        norms_(norms),
        queries_(queries_of_tile(a_.t)),
        scores_(queries_ * std::min(kKeys, a_.s)),
        sums_of_values_(queries_ * a_.width),
        seen_(queries_) {}

  void run(int64_t sequence, int64_t head, int64_t first) {
    const RowRange queries{first, std::min(first + queries_, a_.t)};
    const int64_t rows = queries.end - first, kv = head / a_.group();
    const RowRange keys = a_.seen(sequence, queries);
    const auto q = q_.widened(a_.q.at(sequence, first, head), rows, a_.width, a_.q.of_token);
    std::vector<M> sums(rows, M(0));
    bool begun = false;
    for (int64_t key = keys.begin; key < keys.end; key += kKeys, begun = true) {
      const TileRange tile{queries, {key, std::min(key + kKeys, keys.end)}};
      const int64_t columns = tile.columns();
      const auto k = k_.widened(a_.k.at(sequence, key, kv), columns, a_.width, a_.k.of_token);
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
      write_seen(a_, sequence, tile, seen_.data());
      best_kernels<CappedScoreKernels<M>>().exponentials({scores_.data(), rows, columns, seen_.data(), a_.cap},
                                                         sums.data());
      const auto v = k_.widened(a_.v.at(sequence, key, kv), columns, a_.width, a_.v.of_token);
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
      best_kernels<ElementCopyKernels<T>>().narrow(sums_of_values_.data() + i * a_.width, a_.width, 1 / sums[i],
                                                   y_.at(sequence, first + i, head));
      norms_[(sequence * a_.heads + head) * a_.t + first + i] = std::log(sums[i]);
    }
  }

 private:
  const CappedHeads<T>& a_;
  const Heads<T> y_;
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
    Heads<const T> y, dy;
    const M* norms;
    Heads<T> dq, dk, dv;
  };
  Backward(const CappedHeads<T>& problem, const Tensors& tensors)
      : a_(problem),
        x_(tensors),
        queries_(queries_of_tile(a_.t)),
        scores_(queries_ * std::min(kKeys, a_.s)),
        dscores_(scores_.size()),
        seen_(queries_) {}

  // Computes the gradients of a key and value head and of its queries.
  void run(int64_t sequence, int64_t kv) {
    dk_.begin(x_.dk.at(sequence, 0, kv), a_.s, a_.width, x_.dk.of_token);
    dv_.begin(x_.dv.at(sequence, 0, kv), a_.s, a_.width, x_.dv.of_token);
    for (int64_t head = kv * a_.group(); head < (kv + 1) * a_.group(); ++head) {
      dq_.begin(x_.dq.at(sequence, 0, head), a_.t, a_.width, x_.dq.of_token);
      write_deltas(sequence, head);
      for (int64_t key = 0; key < a_.s; key += kKeys) {
        const RowRange keys{key, std::min(key + kKeys, a_.s)};
        const int64_t columns = keys.end - key;
        const auto k = k_rows_.widened(a_.k.at(sequence, key, kv), columns, a_.width, a_.k.of_token);
        const auto v = v_rows_.widened(a_.v.at(sequence, key, kv), columns, a_.width, a_.v.of_token);
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
      const T *const dy = x_.dy.at(sequence, i, head), *const y = x_.y.at(sequence, i, head);
      for (int64_t j = 0; j < a_.width; ++j) deltas_[i] += static_cast<M>(dy[j]) * static_cast<M>(y[j]);
    }
  }

  void add_keys(int64_t sequence, int64_t head, const RowRange& keys, Tile<const M> k, Tile<const M> v) {
    for (int64_t first = 0; first < a_.t; first += queries_) {
      TileRange tile{{first, std::min(first + queries_, a_.t)}, keys};
      const RowRange seen = a_.seen(sequence, tile.queries);
      if (seen.end <= keys.begin) continue;
      if (seen.begin >= keys.end) break;
      tile.keys.end = std::min(tile.keys.end, seen.end);
      write_seen(a_, sequence, tile, seen_.data());
      add_tile(sequence, head, tile, k, v);
    }
  }

  void add_tile(int64_t sequence, int64_t head, const TileRange& tile, Tile<const M> k, Tile<const M> v) {
    const int64_t rows = tile.rows(), columns = tile.columns(), first = tile.queries.begin, key = tile.keys.begin;
    const int64_t width = a_.width;
    const Tile<const T> q_rows{a_.q.at(sequence, first, head), a_.q.of_token};
    const Tile<const T> dy_rows{x_.dy.at(sequence, first, head), x_.dy.of_token};
    const auto q = q_rows_.widened(q_rows.data, rows, width, q_rows.stride);
    const auto dy = dy_rows_.widened(dy_rows.data, rows, width, dy_rows.stride);
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
      add_narrow(tile, scores_, M(1), dy_rows, dv_.from(key));
      add_narrow(tile, dscores_, a_.scale, q_rows, dk_.from(key));
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

CappedOutput capped_attention(const CappedTensors& x, const CappedAttention& call) {
  check(0 < call.cap && call.cap <= kMostCap,
        "a cap of attention scores whose exponentials neither overflow nor vanish");
  CappedOutput output;
  with_type(x.q_btf.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const CappedHeads<T> a(x, call);
    output.y_btf = at::empty({a.b, a.t, a.heads * a.width}, x.q_btf.options());
    output.norm_bht = at::empty({a.b, a.heads, a.t}, x.q_btf.options().dtype(math_type(x.q_btf)));
    const int64_t queries = queries_of_tile(a.t), blocks = (a.t + queries - 1) / queries;
    const Heads<T> y(output.y_btf, a.heads);
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

void capped_attention_backward(const CappedTensors& x, const CappedAttention& call, const CappedOutput& output,
                               const at::Tensor& dy_btf, const CappedTensors& gradients) {
  with_type(x.q_btf.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const CappedHeads<T> a(x, call);
    const typename Backward<T>::Tensors tensors{{output.y_btf, a.heads},          {dy_btf, a.heads},
                                                read<MathOf<T>>(output.norm_bht), {gradients.q_btf, a.heads},
                                                {gradients.k_bsf, a.kv_heads},    {gradients.v_bsf, a.kv_heads}};
    at::parallel_for(0, a.b * a.kv_heads, 1, [&](int64_t begin, int64_t end) {
      Backward<T> backward(a, tensors);
      for (int64_t i = begin; i < end; ++i) backward.run(i / a.kv_heads, i % a.kv_heads);
    });
  });
}

}  // namespace braid::kernels
