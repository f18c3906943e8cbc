// The loops for LayerNorm and RMSNorm with the residual addition over rows, for any processor.
#pragma once

#include "braid/nn/kernels/rows.h"
#include "braid/nn/kernels/vector.h"

namespace braid::kernels::BRAID_ROWS {

template <class T>
struct NormRow {
  using M = MathOf<T>;
  using L = Lanes<M>;

  // Returns the row to be normalised: the sum of row i, which it writes, or the residual if there is no branch. The
  // passes below read the row from there, rounded to T, so that backward sees the same numbers.
  static BRAID_INLINE const T* add(const NormForwardRows<T>& a, int64_t i) {
    const T* residual = a.residual + i * a.width;
    if (!a.branch) return residual;
    const T* branch = a.branch + i * a.width;
    T* sum = a.sum + i * a.width;
    if (const T* bias = a.branch_bias) {
      for_lanes<T>(
          a.width, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
            store(sum + j, load(residual + j, extent) + (load(branch + j, extent) + load(bias + j, extent)), extent);
          });
    } else {
      for_lanes<T>(
          a.width, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
            store(sum + j, load(residual + j, extent) + load(branch + j, extent), extent);
          });
    }
    return sum;
  }

  static BRAID_INLINE M mean(const T* x, int64_t width) {
    L chains[kChains] = {L(0), L(0), L(0), L(0)};
    for_lanes<T>(
        width, [&](int64_t j, auto extent, int chain)
                   __attribute__((always_inline)) { chains[chain] = chains[chain] + load(x + j, extent); });
    return sum(chains) / static_cast<M>(width);
  }

  // Returns the mean of (x - centre)^2. In a tail, x is zero in unused lanes, so their difference is set to zero too.
  static BRAID_INLINE M mean_square(const T* x, int64_t width, M centre) {
    L chains[kChains] = {L(0), L(0), L(0), L(0)};
    for_lanes<T>(
        width, [&](int64_t j, auto extent, int chain) __attribute__((always_inline)) {
          const L d = zero_beyond(load(x + j, extent) - L(centre), extent);
          chains[chain] = fma(d, d, chains[chain]);
        });
    return sum(chains) / static_cast<M>(width);
  }
};

template <class T>
void norm_forward(const NormForwardRows<T>& a, RowRange rows) {
  using M = MathOf<T>;
  using L = Lanes<M>;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* x = NormRow<T>::add(a, i);
    if (!a.y) continue;
    const bool centred = a.kind == NormKind::Layer;
    const M mean = centred ? NormRow<T>::mean(x, a.width) : M(0);
    const M rstd = M(1) / std::sqrt(NormRow<T>::mean_square(x, a.width, mean) + a.eps);
    const T *weight = a.weight, *bias = a.bias;
    const L offset(a.offset);
    T* y = a.y + i * a.width;
    if (centred) {
      a.mean[i] = mean;
      for_lanes<T>(
          a.width, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
            const L unit = (load(x + j, extent) - L(mean)) * L(rstd);
            store(y + j, fma(unit, load(weight + j, extent) + offset, load(bias + j, extent)), extent);
          });
    } else {
      for_lanes<T>(
          a.width, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
            store(y + j, load(x + j, extent) * L(rstd) * (load(weight + j, extent) + offset), extent);
          });
    }
    a.rstd[i] = rstd;
  }
}

// Computes, over the row, with unit = (x - mean) rstd and g = dy weight:
//   dx = rstd (g - mean(g) - unit mean(g unit)) + dsum      (RMSNorm: no mean, and no mean(g))
template <class T, NormKind kKind>
BRAID_INLINE void norm_backward_row(const NormBackwardRows<T>& a, int64_t i, MathOf<T>* sums) {
  using M = MathOf<T>;
  using L = Lanes<M>;
  constexpr bool kCentred = kKind == NormKind::Layer;
  const T *x = a.x + i * a.width, *dy = a.dy + i * a.width, *weight = a.weight;
  const T* dsum = a.dsum ? a.dsum + i * a.width : nullptr;
  T* dx = a.dx + i * a.width;
  const L mean(kCentred ? a.mean[i] : M(0)), rstd(a.rstd[i]), offset(a.offset);
  const auto unit = [&](int64_t j, auto extent) __attribute__((always_inline)) {
    return kCentred ? (load(x + j, extent) - mean) * rstd : load(x + j, extent) * rstd;
  };
  L g_chains[kChains] = {L(0), L(0), L(0), L(0)}, gu_chains[kChains] = {L(0), L(0), L(0), L(0)};
  for_lanes<T>(
      a.width, [&](int64_t j, auto extent, int chain) __attribute__((always_inline)) {
        const L g = load(dy + j, extent) * (load(weight + j, extent) + offset);
        if constexpr (kCentred) g_chains[chain] = g_chains[chain] + g;
        gu_chains[chain] = fma(g, unit(j, extent), gu_chains[chain]);
      });
  const L g_mean(kCentred ? sum(g_chains) / static_cast<M>(a.width) : M(0));
  const L gu_mean(sum(gu_chains) / static_cast<M>(a.width));
  M *dweight = sums, *dbias = sums + a.width;
  for_lanes<T>(
      a.width, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
        const L d = load(dy + j, extent), u = unit(j, extent);
        L value = d * (load(weight + j, extent) + offset);
        if constexpr (kCentred) value = value - g_mean;
        value = (value - u * gu_mean) * rstd;
        if (dsum) value = value + load(dsum + j, extent);
        store(dx + j, value, extent);
        store(dweight + j, fma(d, u, load(dweight + j, extent)), extent);
        store(dbias + j, load(dbias + j, extent) + d, extent);
      });
}

template <class T>
void norm_backward(const NormBackwardRows<T>& a, RowRange rows, MathOf<T>* sums) {
  std::memset(sums, 0, 2 * a.width * sizeof(MathOf<T>));
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    if (a.kind == NormKind::Layer) {
      norm_backward_row<T, NormKind::Layer>(a, i, sums);
    } else {
      norm_backward_row<T, NormKind::Rms>(a, i, sums);
    }
  }
}

}  // namespace braid::kernels::BRAID_ROWS
