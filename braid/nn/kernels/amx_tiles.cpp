// A panel of rows is packed as [blocks][16 rows][16 pairs], a panel of columns as [blocks][16 pairs][32 columns].
#include "braid/nn/kernels/amx_tiles.h"

#include <algorithm>
#include <cstring>

#include "braid/base/errors.h"
#include "braid/nn/kernels/amx_registers.h"

namespace braid::kernels {

#if defined(__x86_64__)
namespace {

constexpr int64_t kBlockElements = 2 * kAmxSide;  // inner elements of a block of pairs
constexpr int64_t kRowBytes = kTileColumns * 4;   // of a panel of columns, and of sums

// Copies a block of pairs of up to 16 lanes whose inner elements are neighbours, as [16 lanes][16 pairs].
void copy_block(const PanelSource& source, int64_t first_lane, int64_t block, uint32_t* to) {
  const int64_t begin = block * kBlockElements, count = std::min(kBlockElements, source.inner - begin);
  const int64_t lanes = std::clamp<int64_t>(source.lanes - first_lane, 0, kAmxSide);
  if (count < kBlockElements || lanes < kAmxSide) std::fill_n(to, kAmxSide * kAmxSide, 0);
  const auto* from = static_cast<const uint16_t*>(source.data) + first_lane * source.lane_stride + begin;
  for (int64_t lane = 0; lane < lanes; ++lane, from += source.lane_stride) {
    std::memcpy(to + lane * kAmxSide, from, static_cast<size_t>(count) * sizeof(uint16_t));
  }
}

Window window(const PanelSource& source) {
  return {static_cast<const uint16_t*>(source.data), source.inner_stride, source.inner, source.lanes};
}

void pack_rows(const PanelSource& source, uint32_t* to) {
  if (source.inner_stride != 1) return transpose_panel(window(source), to);
  for (int64_t block = 0; block < parts(source.inner, kBlockElements); ++block) {
    copy_block(source, 0, block, to + block * kAmxSide * kAmxSide);
  }
}

void pack_columns(const PanelSource& source, uint32_t* to) {
  const int64_t blocks = parts(source.inner, kBlockElements), pairs = parts(source.inner, 2);
  if (source.inner_stride != 1) {
    weave(window(source), kTileColumns, to);
    std::fill_n(to + pairs * kTileColumns, (blocks * kAmxSide - pairs) * kTileColumns, 0);
    return;
  }
  alignas(64) uint32_t lanes[kAmxSide * kAmxSide];
  for (int64_t block = 0; block < blocks; ++block, to += kAmxSide * kTileColumns) {
    for (int64_t first = 0; first < kTileColumns; first += kAmxSide) {
      copy_block(source, first, block, lanes);
      transpose_tile(lanes, to + first, kTileColumns);
    }
  }
}

void pack_blocks(const PanelSource& source, int64_t width, void* packed) {
  auto* const to = static_cast<uint32_t*>(packed);
  width == kAmxSide ? pack_rows(source, to) : pack_columns(source, to);
}

BRAID_AMX void multiply_blocks(const PackedTile& packed, const void* left, void* to) {
  alignas(64) float sums[kAmxSide][kTileColumns];
  const auto *row = static_cast<const uint32_t*>(packed.rows), *column = static_cast<const uint32_t*>(packed.columns);
  _tile_zero(0);
  _tile_zero(1);
  order_memory();
  for (int64_t block = 0; block < packed.depth; ++block) {
    _tile_loadd(2, row, 4 * kAmxSide);
    _tile_loadd(3, column, kRowBytes);
    _tile_loadd(4, column + kAmxSide, kRowBytes);
    _tile_dpbf16ps(0, 2, 3);
    _tile_dpbf16ps(1, 2, 4);
    row += kAmxSide * kAmxSide;
    column += kAmxSide * kTileColumns;
  }
  _tile_stored(0, &sums[0][0], kRowBytes);
  _tile_stored(1, &sums[0][kAmxSide], kRowBytes);
  order_memory();
  const float *sum = &sums[0][0], *const before = static_cast<const float*>(left);
  for (int64_t i = 0; i < kAmxSide * kTileColumns; i += kAmxSide) {
    const __m512 added = _mm512_load_ps(sum + i);
    _mm512_storeu_ps(static_cast<float*>(to) + i, left ? _mm512_add_ps(_mm512_loadu_ps(before + i), added) : added);
  }
}

}  // namespace

const TileKernels& amx_tiles() {
  static constexpr TileKernels kTiles{kAmxSide,     kTileColumns, sizeof(uint16_t), kBlockElements,
                                      kAmxSide * 4, pack_blocks,  multiply_blocks};
  return kTiles;
}

#else

const TileKernels& amx_tiles() { check(false, "this processor has no AMX"); }

#endif

}  // namespace braid::kernels
