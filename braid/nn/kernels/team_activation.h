// bias + GELU, SwiGLU, rotary embeddings, sums over rows and dropout's mask, computed a pack or a column of packs at a
// time, for host and device. Contracts and roundings are those of rows.h; sums run in another order.
#pragma once

#include <cmath>

#include "braid/base/seeds.h"
#include "braid/nn/kernels/pack.h"
#include "braid/nn/kernels/rows.h"

namespace braid::kernels {

template <class M>
struct Logistic {
  M value, complement;  // both computed without cancellation
};

template <class M>
BRAID_HOST_DEVICE inline Logistic<M> logistic(M z) {
  const M small = std::exp(z < 0 ? z : -z), large_part = M(1) / (M(1) + small), small_part = small * large_part;
  return z < 0 ? Logistic<M>{small_part, large_part} : Logistic<M>{large_part, small_part};
}

// The tanh form: gelu(x) = x sigmoid(x (kLinear + kCubic x^2)).
template <class M>
struct TanhGelu {
  static constexpr M kLinear = static_cast<M>(1.5957691216057307118);  // 2 sqrt(2 / pi)
  static constexpr M kCubic = static_cast<M>(0.044715 * 1.5957691216057307118);

  BRAID_HOST_DEVICE static M value(M x) { return x * logistic(x * (kCubic * x * x + kLinear)).value; }
  BRAID_HOST_DEVICE static M slope(M x) {
    const Logistic<M> s = logistic(x * (kCubic * x * x + kLinear));
    return s.value + x * s.value * s.complement * (3 * kCubic * x * x + kLinear);
  }
};

// Computes pack `i`, counted over all rows in order.
template <int N, class T>
BRAID_HOST_DEVICE void pack_gelu_forward(const GeluForwardRows<T>& a, int64_t i) {
  using M = MathOf<T>;
  const Pack<T, N> h = load_pack<N>(a.h + i * N), bias = load_pack<N>(a.bias + i * N % a.width);
  Pack<T, N> y;
  for (int k = 0; k < N; ++k) {
    y.at[k] = static_cast<T>(TanhGelu<M>::value(static_cast<M>(h.at[k]) + static_cast<M>(bias.at[k])));
  }
  store_pack(a.y + i * N, y);
}

// Computes columns j .. j + N - 1 of `rows`: dh, and the sums of dbias, which it writes to sums[j] and the N - 1
// elements after it. dh may be h.
template <int N, class T>
BRAID_HOST_DEVICE void column_gelu_backward(const GeluBackwardRows<T>& a, int64_t j, RowRange rows, MathOf<T>* sums) {
  using M = MathOf<T>;
  const Pack<T, N> bias = load_pack<N>(a.bias + j);
  Pack<M, N> total{};
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t at = row * a.width + j;
    const Pack<T, N> h = load_pack<N>(a.h + at), dy = load_pack<N>(a.dy + at);
    Pack<T, N> dh;
    for (int k = 0; k < N; ++k) {
      const M x = static_cast<M>(h.at[k]) + static_cast<M>(bias.at[k]);
      const M value = static_cast<M>(dy.at[k]) * TanhGelu<M>::slope(x);
      dh.at[k] = static_cast<T>(value);
      total.at[k] += value;
    }
    store_pack(a.dh + at, dh);
  }
  store_pack(sums + j, total);
}

template <int N, class T>
BRAID_HOST_DEVICE void pack_swiglu_forward(const GateForwardRows<T>& a, int64_t i) {
  using M = MathOf<T>;
  const int64_t row = i * N / a.width, j = i * N % a.width;
  const T* gate = a.gate_up + row * 2 * a.width + j;
  const Pack<T, N> g = load_pack<N>(gate), u = load_pack<N>(gate + a.width);
  Pack<T, N> y;
  for (int k = 0; k < N; ++k) {
    const M x = static_cast<M>(g.at[k]);
    y.at[k] = static_cast<T>(x * logistic(x).value * static_cast<M>(u.at[k]));
  }
  store_pack(a.y + i * N, y);
}

template <int N, class T>
BRAID_HOST_DEVICE void pack_swiglu_backward(const GateBackwardRows<T>& a, int64_t i) {
  using M = MathOf<T>;
  const int64_t row = i * N / a.width, j = i * N % a.width;
  const T* gate = a.gate_up + row * 2 * a.width + j;
  T* dgate = a.dgate_up + row * 2 * a.width + j;
  const Pack<T, N> g = load_pack<N>(gate), u = load_pack<N>(gate + a.width), dy = load_pack<N>(a.dy + i * N);
  Pack<T, N> dg, du;
  for (int k = 0; k < N; ++k) {
    const M x = static_cast<M>(g.at[k]), d = static_cast<M>(dy.at[k]);
    const Logistic<M> s = logistic(x);
    dg.at[k] = static_cast<T>(d * static_cast<M>(u.at[k]) * (s.value + x * s.value * s.complement));
    du.at[k] = static_cast<T>(d * x * s.value);
  }
  store_pack(dgate, dg);
  store_pack(dgate + a.width, du);
}

// Rotates pack `i`, counted row by row over the first halves of all heads to rotate, together with its pair in the
// second half.
template <int N, class T>
BRAID_HOST_DEVICE void pack_rotary(const RotaryRows<T>& a, int64_t i) {
  using M = MathOf<T>;
  const int64_t per_head = a.half / N, j = i % per_head * N, head = i / per_head % a.heads,
                row = i / per_head / a.heads;
  T* first = a.x + row * a.stride + head * 2 * a.half + j;
  const Pack<M, N> cos = load_pack<N>(a.cos + row % a.time * a.half + j);
  const Pack<M, N> sin = load_pack<N>(a.sin + row % a.time * a.half + j);
  Pack<T, N> p = load_pack<N>(first), q = load_pack<N>(first + a.half);
  for (int k = 0; k < N; ++k) {
    const M x = static_cast<M>(p.at[k]), y = static_cast<M>(q.at[k]), s = sin.at[k] * a.direction;
    p.at[k] = static_cast<T>(x * cos.at[k] - y * s);
    q.at[k] = static_cast<T>(y * cos.at[k] + x * s);
  }
  store_pack(first, p);
  store_pack(first + a.half, q);
}

// A row-major matrix whose rows are contiguous, one after another.
template <class T>
struct RowMatrix {
  const T* x;
  int64_t width;
};

// Writes the sums over `rows` of columns j .. j + N - 1 to sums[j] and the elements after it.
template <int N, class T>
BRAID_HOST_DEVICE void column_sum(const RowMatrix<T>& a, int64_t j, RowRange rows, MathOf<T>* sums) {
  using M = MathOf<T>;
  Pack<M, N> total{};
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const Pack<T, N> x = load_pack<N>(a.x + row * a.width + j);
    for (int k = 0; k < N; ++k) total.at[k] += static_cast<M>(x.at[k]);
  }
  store_pack(sums + j, total);
}

// Computes to[j] = keep to[j] + the sum over parts, in order. With keep 0, `to` is not read.
template <class M>
BRAID_HOST_DEVICE void column_of_parts(const SumParts<M>& a, int64_t j, M keep) {
  M total = 0;
  for (int64_t i = 0; i < a.num_parts; ++i) total += a.parts[i * a.stride + j];
  a.to[j] = keep == 0 ? total : a.to[j] + total;
}

// The mask of dropout: keep[i] = 1 with probability threshold / 2^32, as a function of (key, place, begin + i).
struct KeepMask {
  const uint64_t* key;  // on the device; every replay of a recorded graph may read another key
  uint64_t place;       // the dropout's number in the model; below 2^32 - 1
  uint64_t threshold;   // up to 2^32
  bool* keep;
  int64_t count;
  int64_t begin = 0;

  // Returns the number of draws. Each has four elements.
  BRAID_HOST_DEVICE int64_t draws() const { return (begin + count + 3) / 4 - begin / 4; }
};

// Makes draw i of the mask: elements 4 n .. 4 n + 3 of all, n = begin / 4 + i.
BRAID_HOST_DEVICE inline void draw_keep_mask(const KeepMask& a, int64_t i) {
  const auto at = static_cast<uint64_t>(a.begin / 4 + i);
  const int64_t first = 4 * i - a.begin % 4;
  const PhiloxWords words = philox_words(
      {{static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), static_cast<uint32_t>(a.place + 1), 0}}, *a.key);
  for (int k = 0; k < 4 && first + k < a.count; ++k) {
    if (first + k >= 0) a.keep[first + k] = words.at[k] < a.threshold;
  }
}

}  // namespace braid::kernels
