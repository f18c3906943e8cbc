// The loops of capped_rows.h, for any processor.
#pragma once

#include <algorithm>

#include "braid/nn/kernels/capped_rows.h"
#include "braid/nn/kernels/vector_math.h"

namespace braid::kernels {

namespace BRAID_ROWS {

BRAID_INLINE Lanes<float> probability(const Lanes<float>& z) { return exp_of_nonpositive(z); }
BRAID_INLINE Lanes<double> probability(const Lanes<double>& z) { return exp_within_range(z); }

template <class T>
void capped_exponentials(const ScoreTile<T>& a, T* sums) {
  using L = Lanes<T>;
  const L cap(a.cap);
  for (int64_t i = 0; i < a.rows; ++i) {
    T* const row = a.x + i * a.columns;
    const auto [begin, end] = a.seen[i];
    L chains[kChains] = {0, 0, 0, 0};
    for_lanes<T>(
        end - begin, [&](int64_t j, auto extent, int chain) __attribute__((always_inline)) {
          const L e = exp_within_range(cap * tanh(load(row + begin + j, extent)));
          store(row + begin + j, e, extent);
          chains[chain] = chains[chain] + zero_beyond(e, extent);
        });
    std::fill(row, row + begin, T(0));
    std::fill(row + end, row + a.columns, T(0));
    sums[i] += sum(chains);
  }
}

template <class T>
void score_gradient(const ScoreTile<T>& a, const ScoreGradient<T>& g) {
  using L = Lanes<T>;
  const L cap(a.cap);
  for (int64_t i = 0; i < a.rows; ++i) {
    T *const row = a.x + i * a.columns, *const dp = g.dp + i * a.columns;
    const auto [begin, end] = a.seen[i];
    const L norm(g.norm[i]), delta(g.delta[i]);
    for_lanes<T>(
        end - begin, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
          const L x = load(row + begin + j, extent), p = probability(cap * tanh(x) - norm);
          store(row + begin + j, p, extent);
          store(dp + begin + j, p * (load(dp + begin + j, extent) - delta) * tanh_slope(x), extent);
        });
    for (T* const unseen : {row, dp}) {
      std::fill(unseen, unseen + begin, T(0));
      std::fill(unseen + end, unseen + a.columns, T(0));
    }
  }
}

template <class T>
void widen_elements(const T* from, int64_t count, MathOf<T>* to) {
  for_lanes<T>(
      count, [&](int64_t j, auto extent, int)
                 __attribute__((always_inline)) { store(to + j, load(from + j, extent), extent); });
}

template <class T>
void narrow_elements(const MathOf<T>* from, int64_t count, MathOf<T> factor, T* to) {
  const Lanes<MathOf<T>> times(factor);
  for_lanes<T>(
      count, [&](int64_t j, auto extent, int)
                 __attribute__((always_inline)) { store(to + j, times * load(from + j, extent), extent); });
}

template <class T>
constexpr ElementCopyKernels<T> kElementCopies{widen_elements<T>, narrow_elements<T>};

template <class M>
constexpr CappedScoreKernels<M> kCappedScores{capped_exponentials<M>, score_gradient<M>};

}  // namespace BRAID_ROWS

}  // namespace braid::kernels
