// The loops of tile_sums.h for float and double, for any processor.
#pragma once

#include <algorithm>

#include "braid/nn/kernels/tile_sums.h"
#include "braid/nn/kernels/vector.h"

namespace braid::kernels {

namespace BRAID_ROWS {

// A tile fits the registers: 32 of 64 bytes, or 16 of 32.
constexpr int kTileRows = kRegisterBytes == 64 ? 14 : 6;
constexpr int kTileSides = kRegisterBytes == 64 ? 2 : 1;  // of the two registers of a row, summed at a time

template <class M>
void multiply_tile(const PackedTile& tile, const void* left, void* to) {
  constexpr int64_t kLanes = Lanes<M>::kCount, kColumns = 2 * kLanes;
  for (int64_t side = 0; side < 2; side += kTileSides) {
    const M* rows = static_cast<const M*>(tile.rows);
    const M* columns = static_cast<const M*>(tile.columns) + side * kLanes;
    Lanes<M> sums[kTileRows][kTileSides];
#pragma GCC unroll 14
    for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
      for (int s = 0; s < kTileSides; ++s) sums[r][s] = Lanes<M>(0);
    }
    for (int64_t k = 0; k < tile.depth; ++k, rows += kTileLanes, columns += kColumns) {
      Lanes<M> b[kTileSides];
#pragma GCC unroll 2
      for (int s = 0; s < kTileSides; ++s) b[s] = load(columns + s * kLanes);
#pragma GCC unroll 14
      for (int r = 0; r < kTileRows; ++r) {
        const Lanes<M> a(rows[r]);
#pragma GCC unroll 2
        for (int s = 0; s < kTileSides; ++s) sums[r][s] = fma(a, b[s], sums[r][s]);
      }
    }
    M* const out = static_cast<M*>(to) + side * kLanes;
    const M* const before = static_cast<const M*>(left) + side * kLanes;
#pragma GCC unroll 14
    for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
      for (int s = 0; s < kTileSides; ++s) {
        const int64_t at = r * kColumns + s * kLanes;
        store(out + at, left ? load(before + at) + sums[r][s] : sums[r][s]);
      }
    }
  }
}

// Transposes four lanes and four inner elements at a time.
template <class E>
BRAID_INLINE void transpose_four(const E* from, int64_t stride, E* to, int64_t width) {
  using Four __attribute__((vector_size(4 * sizeof(E)))) = E;
  using Index __attribute__((vector_size(4 * sizeof(E)))) = std::conditional_t<sizeof(E) == 4, int32_t, int64_t>;
  const Four a = load_register<Four>(from), b = load_register<Four>(from + stride),
             c = load_register<Four>(from + 2 * stride), d = load_register<Four>(from + 3 * stride);
  constexpr Index kLow{0, 4, 1, 5}, kHigh{2, 6, 3, 7}, kFirst{0, 1, 4, 5}, kSecond{2, 3, 6, 7};
  const Four ab = __builtin_shuffle(a, b, kLow), cd = __builtin_shuffle(c, d, kLow);
  const Four ab2 = __builtin_shuffle(a, b, kHigh), cd2 = __builtin_shuffle(c, d, kHigh);
  store_register(to, __builtin_shuffle(ab, cd, kFirst));
  store_register(to + width, __builtin_shuffle(ab, cd, kSecond));
  store_register(to + 2 * width, __builtin_shuffle(ab2, cd2, kFirst));
  store_register(to + 3 * width, __builtin_shuffle(ab2, cd2, kSecond));
}

template <class E>
void pack_panel(const PanelSource& source, int64_t width, void* packed) {
  const E* from = static_cast<const E*>(source.data);
  E* to = static_cast<E*>(packed);
  const int64_t lanes = source.lanes, inner = source.inner;
  if (source.inner_stride != 1) {
    for (int64_t k = 0; k < inner; ++k, to += width) {
      const E* const row = from + k * source.inner_stride;
      if (lanes == width) {
        for (int64_t lane = 0; lane < width; lane += Lanes<E>::kCount) store(to + lane, load(row + lane));
        continue;
      }
      std::memcpy(to, row, lanes * sizeof(E));
      std::memset(static_cast<void*>(to + lanes), 0, (width - lanes) * sizeof(E));
    }
    return;
  }
  const int64_t fours = lanes / 4 * 4;
  for (int64_t lane = 0; lane < fours; lane += 4) {
    const E* const rows = from + lane * source.lane_stride;
    int64_t k = 0;
    for (; k + 4 <= inner; k += 4) transpose_four(rows + k, source.lane_stride, to + k * width + lane, width);
    for (; k < inner; ++k) {
      for (int64_t l = 0; l < 4; ++l) to[k * width + lane + l] = rows[l * source.lane_stride + k];
    }
  }
  for (int64_t k = 0; k < inner; ++k) {
    for (int64_t lane = fours; lane < width; ++lane)
      to[k * width + lane] = lane < lanes ? from[lane * source.lane_stride + k] : E(0);
  }
}

template <class M>
constexpr PlainTileKernels<M> kPlainTiles{
    {kTileRows, 2 * Lanes<M>::kCount, sizeof(M), 1, sizeof(M), pack_panel<M>, multiply_tile<M>}};

}  // namespace BRAID_ROWS

}  // namespace braid::kernels
