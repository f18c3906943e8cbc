// Products of small matrices in raw memory, on the calling thread.
#pragma once

#include <cstdint>

namespace braid::kernels {

// A row-major matrix. The elements of a row are contiguous, and `stride` is the distance between rows.
template <class M>
struct Tile {
  M* data;
  int64_t stride;
};

enum class TileForm { Plain, Transposed };

// c = alpha a b + beta c, with c [rows, columns]. a is [rows, inner], or [inner, rows] if it is Transposed; b is
// [inner, columns], or [columns, inner]. All sizes are positive. With beta 0, c is not read.
template <class M>
struct TileProduct {
  int64_t rows, columns, inner;
  M alpha;
  Tile<const M> a;
  TileForm form_a;
  Tile<const M> b;
  TileForm form_b;
  M beta;
  Tile<M> c;
};

// Computes the product with the BLAS that LibTorch exports, or with multiply_by_library() if it exports none. M is
// float or double. Its bits depend only on the operands where at::get_num_threads() is 1 or in a parallel region.
void multiply(const TileProduct<float>& product);
void multiply(const TileProduct<double>& product);

// Computes the same product with LibTorch's addmm, which takes some microseconds more.
template <class M>
void multiply_by_library(const TileProduct<M>& product);

}  // namespace braid::kernels
