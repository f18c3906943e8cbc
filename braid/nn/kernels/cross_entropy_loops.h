// The passes of cross_entropy_rows.h, for any processor.
#pragma once

#include <cmath>
#include <limits>

#include "braid/nn/kernels/cross_entropy_rows.h"
#include "braid/nn/kernels/vector_math.h"

namespace braid::kernels {

namespace BRAID_ROWS {

template <class M>
constexpr M kLowest = -std::numeric_limits<M>::infinity();

// Lanes beyond the tail are -inf, whose exponential is zero.
template <class T>
BRAID_INLINE Lanes<MathOf<T>> load_logits(const T* p, Whole) {
  return load(p);
}
template <class T>
BRAID_INLINE Lanes<MathOf<T>> load_logits(const T* p, Head head) {
  T full[kLanesOf<T>];
  for (T& one : full) one = static_cast<T>(kLowest<MathOf<T>>);
  std::memcpy(full, p, head.count * sizeof(T));
  return load(full);
}

// Ignores a NaN in `a`. The NaN reappears in the sum of exponentials.
template <class M>
BRAID_INLINE Lanes<M> larger(const Lanes<M>& a, const Lanes<M>& b) {
  Lanes<M> r;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) r.part[i] = a.part[i] > b.part[i] ? a.part[i] : b.part[i];
  return r;
}

// The logits of a row as they count.
template <class M>
struct Uncapped {
  BRAID_INLINE Lanes<M> value(const Lanes<M>& x) const { return x; }
  // Lanes beyond a row's tail are -inf, and their exponentials are zero already.
  template <class Extent>
  BRAID_INLINE Lanes<M> only(const Lanes<M>& e, Extent) const {
    return e;
  }
  BRAID_INLINE Lanes<M> with_slope(const Lanes<M>& gradient, const Lanes<M>&) const { return gradient; }
};
template <class M>
struct Capped {
  M cap;
  BRAID_INLINE Lanes<M> value(const Lanes<M>& x) const { return Lanes<M>(cap) * tanh(x / Lanes<M>(cap)); }
  template <class Extent>
  BRAID_INLINE Lanes<M> only(const Lanes<M>& e, Extent extent) const {
    return zero_beyond(e, extent);
  }
  BRAID_INLINE Lanes<M> with_slope(const Lanes<M>& gradient, const Lanes<M>& x) const {
    return gradient * tanh_slope(x / Lanes<M>(cap));
  }
};
template <class M, class Row>
BRAID_INLINE M of_one(const Row& row, M x) {
  M lanes[Lanes<M>::kCount];
  store(lanes, row.value(Lanes<M>(x)));
  return lanes[0];
}

template <class T, class Row>
MathOf<T> largest(const T* x, int64_t count, const Row& row) {
  using L = Lanes<MathOf<T>>;
  L chains[kChains] = {kLowest<MathOf<T>>, kLowest<MathOf<T>>, kLowest<MathOf<T>>, kLowest<MathOf<T>>};
  for_lanes<T>(
      count, [&](int64_t j, auto extent, int chain)
                 __attribute__((always_inline)) { chains[chain] = larger(load_logits(x + j, extent), chains[chain]); });
  MathOf<T> lanes[L::kCount];
  store(lanes, larger(larger(chains[0], chains[1]), larger(chains[2], chains[3])));
  MathOf<T> most = lanes[0];
  for (const MathOf<T> lane : lanes) most = lane > most ? lane : most;
  return count > 0 ? of_one(row, most) : most;
}

template <class T, class Row>
void softmax_sums_of(const SoftmaxSumRows<T>& a, RowRange rows, const Row& row) {
  using M = MathOf<T>;
  using L = Lanes<M>;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* x = a.logits.x + i * a.logits.width;
    const int64_t column = a.logits.column[i];
    a.target[i] = column < 0 ? 0 : of_one(row, static_cast<M>(x[column]));
    a.max[i] = largest(x, a.logits.real, row);
    const L max(a.max[i]);
    L chains[kChains] = {0, 0, 0, 0};
    for_lanes<T>(
        a.logits.real, [&](int64_t j, auto extent, int chain) __attribute__((always_inline)) {
          const L e = exp_of_nonpositive(row.value(load_logits(x + j, extent)) - max);
          chains[chain] = chains[chain] + row.only(e, extent);
        });
    a.sum[i] = sum(chains);
  }
}

template <class T>
void softmax_sums(const SoftmaxSumRows<T>& a, RowRange rows) {
  using M = MathOf<T>;
  a.logits.cap > 0 ? softmax_sums_of(a, rows, Capped<M>{a.logits.cap}) : softmax_sums_of(a, rows, Uncapped<M>());
}

template <class T, class Row>
void softmax_gradient_of(const SoftmaxGradientRows<T>& a, RowRange rows, const Row& row) {
  using M = MathOf<T>;
  using L = Lanes<M>;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    T* x = a.logits.x + i * a.logits.width;
    const int64_t column = a.logits.column[i];
    const L target(column < 0 ? M(0) : static_cast<M>(x[column]));
    const L max(a.max[i]), scale(a.scale[i]);
    for_lanes<T>(
        a.logits.real, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
          const L logits = load_logits(x + j, extent);
          store(x + j, row.with_slope(exp_of_nonpositive(row.value(logits) - max) * scale, logits), extent);
        });
    std::memset(static_cast<void*>(x + a.logits.real), 0, (a.logits.width - a.logits.real) * sizeof(T));
    if (column < 0) continue;
    // Rounded once, because the two terms nearly cancel for probabilities near 1.
    M lanes[L::kCount];
    store(lanes, row.value(target));
    store(lanes, row.with_slope(L(std::exp(lanes[0] - a.max[i]) * a.scale[i] - a.step), target));
    x[column] = static_cast<T>(lanes[0]);
  }
}

template <class T>
void softmax_gradient(const SoftmaxGradientRows<T>& a, RowRange rows) {
  using M = MathOf<T>;
  a.logits.cap > 0 ? softmax_gradient_of(a, rows, Capped<M>{a.logits.cap})
                   : softmax_gradient_of(a, rows, Uncapped<M>());
}

template <class T>
constexpr CrossEntropyKernels<T> kCrossEntropy{softmax_sums<T>, softmax_gradient<T>};

}  // namespace BRAID_ROWS

}  // namespace braid::kernels
