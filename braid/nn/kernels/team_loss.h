// The passes of a cross-entropy and the scatter of an embedding's gradient, computed by a team of threads
// (team_norm.h). Contracts are those of cross_entropy_rows.h and scatter.h, with one exception: a row whose logits are
// all -inf has the sum 0.
#pragma once

#include <cmath>

#include "braid/nn/kernels/cross_entropy_rows.h"
#include "braid/nn/kernels/pack.h"

namespace braid::kernels {

template <class M>
BRAID_HOST_DEVICE inline M lowest() {
  return -static_cast<M>(INFINITY);
}

// A running maximum and the sum of exponentials relative to it, computed in one pass over the logits.
template <class M>
struct RunningSoftmax {
  M max = lowest<M>(), sum = 0;

  BRAID_HOST_DEVICE void raise(M to) {
    if (!(to > max)) return;
    sum = sum * std::exp(max - to);
    max = to;
  }
  // Adds nothing for -inf, even while the maximum is -inf. A NaN makes the sum NaN.
  BRAID_HOST_DEVICE void add(M x) {
    if (x != lowest<M>()) sum += std::exp(x - max);
  }
};

// Computes the sums of one row. Threads read the first `whole` elements, a multiple of N, in packs and the rest one by
// one.
template <int N, class T, class Team>
BRAID_HOST_DEVICE void team_softmax_sums(const SoftmaxSumRows<T>& a, int64_t row, const Team& team) {
  using M = MathOf<T>;
  const T* x = a.logits.x + row * a.logits.width;
  const int64_t whole = a.logits.real / N * N;
  RunningSoftmax<M> own;
  for (int64_t j = team.rank() * N; j < whole; j += team.size() * N) {
    const Pack<T, N> v = load_pack<N>(x + j);
    M most = lowest<M>();
    for (int k = 0; k < N; ++k) most = static_cast<M>(v.at[k]) > most ? static_cast<M>(v.at[k]) : most;
    own.raise(most);
    for (int k = 0; k < N; ++k) own.add(static_cast<M>(v.at[k]));
  }
  for (int64_t j = whole + team.rank(); j < a.logits.real; j += team.size()) {
    own.raise(static_cast<M>(x[j]));
    own.add(static_cast<M>(x[j]));
  }
  const M max = team.max(own.max);
  M sum[1] = {own.max == max ? own.sum : own.sum * std::exp(own.max - max)};
  team.sum(sum);
  if (team.rank() != 0) return;
  const int64_t column = a.logits.column[row];
  a.max[row] = max;
  a.sum[row] = sum[0];
  a.target[row] = column < 0 ? M(0) : static_cast<M>(x[column]);
}

// SoftmaxGradientRows with `step` in device memory.
template <class T>
struct TeamSoftmaxGradient {
  LogitRows<T> logits;
  const MathOf<T>*max, *scale, *step;
};

template <int N, class T, class Team>
BRAID_HOST_DEVICE void team_softmax_gradient(const TeamSoftmaxGradient<T>& a, int64_t row, const Team& team) {
  using M = MathOf<T>;
  T* x = a.logits.x + row * a.logits.width;
  const int64_t column = a.logits.column[row], real = a.logits.real;
  const M max = a.max[row], scale = a.scale[row], step = *a.step;
  for (int64_t j = team.rank() * N; j < a.logits.width; j += team.size() * N) {
    Pack<T, N> v = load_pack<N>(x + j);
    for (int k = 0; k < N; ++k) {
      M value = j + k < real ? std::exp(static_cast<M>(v.at[k]) - max) * scale : M(0);
      if (j + k == column) value -= step;
      v.at[k] = static_cast<T>(value);
    }
    store_pack(x + j, v);
  }
}

// Computes table[rows[k]] += x[order[k]] over k, with `rows` ascending. The team of the first of several equal rows
// adds all of them, in order. So no two teams add to one row, and the bits are the same in every run.
template <class T>
struct SortedRows {
  const T* x;
  MathOf<T>* table;
  const int64_t *rows, *order;
  int64_t count, width;
};

template <int N, class T, class Team>
BRAID_HOST_DEVICE void team_add_rows(const SortedRows<T>& a, int64_t k, const Team& team) {
  using M = MathOf<T>;
  const int64_t row = a.rows[k];
  if (k > 0 && a.rows[k - 1] == row) return;
  for (int64_t j = team.rank() * N; j < a.width; j += team.size() * N) {
    Pack<M, N> total = load_pack<N>(a.table + row * a.width + j);
    for (int64_t i = k; i < a.count && a.rows[i] == row; ++i) {
      const Pack<T, N> x = load_pack<N>(a.x + a.order[i] * a.width + j);
      for (int e = 0; e < N; ++e) total.at[e] += static_cast<M>(x.at[e]);
    }
    store_pack(a.table + row * a.width + j, total);
  }
}

}  // namespace braid::kernels
