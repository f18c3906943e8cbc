// Tiles of sums of products over packed panels, with one set of functions for each kind of processor (processor.h) and
// one for bfloat16 pairs (product_bf16.h).
//
// A panel holds some rows of the first operand, or some columns of the second, as packed[k][lane]. A tile is the
// product of two panels: each of its sums is one chain of fused multiply-adds over k, from zero; by AMX of sums over 16
// pairs.
#pragma once

#include <cstdint>

namespace braid::kernels {

inline constexpr int64_t kTileLanes = 16;    // lanes of a panel of rows; a tile may use fewer
inline constexpr int64_t kTileColumns = 32;  // lanes of a panel of columns; of float64, half as many

// Neighbouring rows or columns of an operand, `lanes` of them, over inner elements 0 .. inner - 1. Element (lane, k) is
// at data + lane * lane_stride + k * inner_stride, in elements; one of the strides is 1.
struct PanelSource {
  const void* data;
  int64_t lane_stride, inner_stride, lanes, inner;
};

struct PackedTile {
  const void *rows, *columns;
  int64_t depth;  // packed elements
};

struct TileKernels {
  int64_t rows;     // rows of a tile, at most kTileLanes
  int64_t columns;  // columns of a tile
  int64_t element;  // bytes of an element of an operand
  int64_t pair;     // inner elements that a packed element holds: 1; of bfloat16 2, or 32 for AMX
  int64_t packed;   // bytes of a packed element
  // Packs a panel, padded with zeros to `width` lanes and to whole packed elements. `width` is kTileLanes for rows and
  // `columns` for columns.
  void (*pack)(const PanelSource& source, int64_t width, void* packed);
  // Writes left + the rows x columns sums over `depth` packed elements; `left` may be null, for none, or `sums`.
  void (*multiply)(const PackedTile& tile, const void* left, void* sums);
};

// The set of float or double.
template <class M>
struct PlainTileKernels : TileKernels {};

}  // namespace braid::kernels
