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

template <class T>
MathOf<T> largest(const T* x, int64_t count) {
  using L = Lanes<MathOf<T>>;
  L chains[kChains] = {kLowest<MathOf<T>>, kLowest<MathOf<T>>, kLowest<MathOf<T>>, kLowest<MathOf<T>>};
  for_lanes<T>(
      count, [&](int64_t j, auto extent, int chain)
                 __attribute__((always_inline)) { chains[chain] = larger(load_logits(x + j, extent), chains[chain]); });
  MathOf<T> lanes[L::kCount];
  store(lanes, larger(larger(chains[0], chains[1]), larger(chains[2], chains[3])));
  MathOf<T> most = lanes[0];
  for (const MathOf<T> lane : lanes) most = lane > most ? lane : most;
  return most;
}

template <class T>
void softmax_sums(const SoftmaxSumRows<T>& a, RowRange rows) {
  using L = Lanes<MathOf<T>>;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* x = a.logits.x + i * a.logits.width;
    const int64_t column = a.logits.column[i];
    a.target[i] = column < 0 ? 0 : static_cast<MathOf<T>>(x[column]);
    a.max[i] = largest(x, a.logits.real);
    const L max(a.max[i]);
    L chains[kChains] = {0, 0, 0, 0};
    for_lanes<T>(
        a.logits.real, [&](int64_t j, auto extent, int chain) __attribute__((always_inline)) {
          chains[chain] = chains[chain] + exp_of_nonpositive(load_logits(x + j, extent) - max);
        });
    a.sum[i] = sum(chains);
  }
}

template <class T>
void softmax_gradient(const SoftmaxGradientRows<T>& a, RowRange rows) {
  using M = MathOf<T>;
  using L = Lanes<M>;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    T* x = a.logits.x + i * a.logits.width;
    const int64_t column = a.logits.column[i];
    const M target = column < 0 ? 0 : static_cast<M>(x[column]);
    const L max(a.max[i]), scale(a.scale[i]);
    for_lanes<T>(
        a.logits.real, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
          store(x + j, exp_of_nonpositive(load_logits(x + j, extent) - max) * scale, extent);
        });
    std::memset(static_cast<void*>(x + a.logits.real), 0, (a.logits.width - a.logits.real) * sizeof(T));
    // Rounded once, because the two terms nearly cancel for probabilities near 1.
    if (column >= 0) x[column] = static_cast<T>(std::exp(target - a.max[i]) * a.scale[i] - a.step);
  }
}

template <class T>
constexpr CrossEntropyKernels<T> kCrossEntropy{softmax_sums<T>, softmax_gradient<T>};

}  // namespace BRAID_ROWS

}  // namespace braid::kernels
