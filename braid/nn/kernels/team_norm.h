// LayerNorm and RMSNorm computed by a team of threads: a block on a device, or threads of the host in tests. Contracts
// and roundings are those of rows.h; sums run in another order.
//
// A Team has rank(), size() and sum(values). sum(values) adds up each of a few values over the team's threads and gives
// every thread the totals. A thread accesses only the packs rank, rank + size, .. of a row, so it may read its own
// writes without a barrier.
#pragma once

#include <cmath>

#include "braid/nn/kernels/pack.h"
#include "braid/nn/kernels/rows.h"

namespace braid::kernels {

// Writes residual + branch + branch_bias, rounded, and returns its address. Returns the residual if there is no branch.
template <int N, class T, class Team>
BRAID_HOST_DEVICE const T* team_add_row(const NormForwardRows<T>& a, int64_t row, const Team& team) {
  using M = MathOf<T>;
  const T* residual = a.residual + row * a.width;
  if (!a.branch) return residual;
  const T* branch = a.branch + row * a.width;
  T* sum = a.sum + row * a.width;
  for (int64_t j = team.rank() * N; j < a.width; j += team.size() * N) {
    const Pack<T, N> r = load_pack<N>(residual + j), b = load_pack<N>(branch + j);
    Pack<T, N> bias{}, out;
    if (a.branch_bias) bias = load_pack<N>(a.branch_bias + j);
    for (int k = 0; k < N; ++k) {
      M joined = static_cast<M>(b.at[k]);
      if (a.branch_bias) joined += static_cast<M>(bias.at[k]);
      out.at[k] = static_cast<T>(static_cast<M>(r.at[k]) + joined);
    }
    store_pack(sum + j, out);
  }
  return sum;
}

template <int N, class T, class Team>
BRAID_HOST_DEVICE void team_norm_forward(const NormForwardRows<T>& a, int64_t row, const Team& team) {
  using M = MathOf<T>;
  const T* x = team_add_row<N>(a, row, team);
  if (!a.y) return;
  const bool centred = a.kind == NormKind::Layer;
  M mean = 0;
  if (centred) {
    M total[1] = {0};
    for (int64_t j = team.rank() * N; j < a.width; j += team.size() * N) {
      const Pack<T, N> v = load_pack<N>(x + j);
      for (int k = 0; k < N; ++k) total[0] += static_cast<M>(v.at[k]);
    }
    team.sum(total);
    mean = total[0] / static_cast<M>(a.width);
  }
  M square[1] = {0};
  for (int64_t j = team.rank() * N; j < a.width; j += team.size() * N) {
    const Pack<T, N> v = load_pack<N>(x + j);
    for (int k = 0; k < N; ++k) {
      const M d = static_cast<M>(v.at[k]) - mean;
      square[0] += d * d;
    }
  }
  team.sum(square);
  const M rstd = M(1) / std::sqrt(square[0] / static_cast<M>(a.width) + a.eps);
  T* y = a.y + row * a.width;
  for (int64_t j = team.rank() * N; j < a.width; j += team.size() * N) {
    const Pack<T, N> v = load_pack<N>(x + j), weight = load_pack<N>(a.weight + j);
    Pack<T, N> bias{}, out;
    if (a.bias) bias = load_pack<N>(a.bias + j);
    for (int k = 0; k < N; ++k) {
      M value = (static_cast<M>(v.at[k]) - mean) * rstd * (static_cast<M>(weight.at[k]) + a.offset);
      if (a.bias) value += static_cast<M>(bias.at[k]);
      out.at[k] = static_cast<T>(value);
    }
    store_pack(y + j, out);
  }
  if (team.rank() == 0) {
    if (centred) a.mean[row] = mean;
    a.rstd[row] = rstd;
  }
}

// Computes dx of one row, and adds the row's contributions to dweight and dbias, `width` each, to `sums`. Each thread
// has its own columns.
template <int N, class T, class Team>
BRAID_HOST_DEVICE void team_norm_backward_row(const NormBackwardRows<T>& a, int64_t row, const Team& team,
                                              MathOf<T>* sums) {
  using M = MathOf<T>;
  const bool centred = a.kind == NormKind::Layer;
  const T *x = a.x + row * a.width, *dy = a.dy + row * a.width;
  const M mean = centred ? a.mean[row] : M(0), rstd = a.rstd[row];
  M over_row[2] = {0, 0};  // sums of g = dy weight, and of g unit
  for (int64_t j = team.rank() * N; j < a.width; j += team.size() * N) {
    const Pack<T, N> v = load_pack<N>(x + j), d = load_pack<N>(dy + j), weight = load_pack<N>(a.weight + j);
    for (int k = 0; k < N; ++k) {
      const M g = static_cast<M>(d.at[k]) * (static_cast<M>(weight.at[k]) + a.offset);
      over_row[0] += g;
      over_row[1] += g * ((static_cast<M>(v.at[k]) - mean) * rstd);
    }
  }
  team.sum(over_row);
  const M g_mean = centred ? over_row[0] / static_cast<M>(a.width) : M(0);
  const M gu_mean = over_row[1] / static_cast<M>(a.width);
  for (int64_t j = team.rank() * N; j < a.width; j += team.size() * N) {
    const Pack<T, N> v = load_pack<N>(x + j), d = load_pack<N>(dy + j), weight = load_pack<N>(a.weight + j);
    Pack<M, N> dweight = load_pack<N>(sums + j), dbias = load_pack<N>(sums + a.width + j);
    Pack<T, N> past{}, out;
    if (a.dsum) past = load_pack<N>(a.dsum + row * a.width + j);
    for (int k = 0; k < N; ++k) {
      const M unit = (static_cast<M>(v.at[k]) - mean) * rstd, dy_k = static_cast<M>(d.at[k]);
      M value = (dy_k * (static_cast<M>(weight.at[k]) + a.offset) - g_mean - unit * gu_mean) * rstd;
      if (a.dsum) value += static_cast<M>(past.at[k]);
      out.at[k] = static_cast<T>(value);
      dweight.at[k] += dy_k * unit;
      dbias.at[k] += dy_k;
    }
    store_pack(a.dx + row * a.width + j, out);
    store_pack(sums + j, dweight);
    store_pack(sums + a.width + j, dbias);
  }
}

// Computes all rows of `rows`. `work` has room for 2 `width` sums and may be `sums` itself. On a device, it is shared
// memory.
template <int N, class T, class Team>
BRAID_HOST_DEVICE void team_norm_backward(const NormBackwardRows<T>& a, RowRange rows, const Team& team,
                                          MathOf<T>* work, MathOf<T>* sums) {
  using M = MathOf<T>;
  for (int64_t part = 0; part < 2; ++part) {
    for (int64_t j = team.rank() * N; j < a.width; j += team.size() * N) {
      store_pack(work + part * a.width + j, Pack<M, N>{});
    }
  }
  for (int64_t row = rows.begin; row < rows.end; ++row) team_norm_backward_row<N>(a, row, team, work);
  if (work == sums) return;
  for (int64_t part = 0; part < 2; ++part) {
    for (int64_t j = team.rank() * N; j < a.width; j += team.size() * N) {
      store_pack(sums + part * a.width + j, load_pack<N>(work + part * a.width + j));
    }
  }
}

}  // namespace braid::kernels
