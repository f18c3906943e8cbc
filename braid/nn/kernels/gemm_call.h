// The product of weight gradients in the terms of BLAS, whose matrices are column-major.
//
//   row-major out[o, i] is column-major out^T[i, o];   out^T = x^T dy;   row-major x[n, i] is column-major x^T[i, n]
#pragma once

#include <cstdint>

namespace braid::kernels {

enum class NarrowType { Bfloat16, Float16 };

// out = beta * out + dy^T x.
struct WeightProduct {
  NarrowType type = NarrowType::Bfloat16;
  const void *dy = nullptr, *x = nullptr;  // row-major; the elements of a row are contiguous
  int64_t dy_stride = 0, x_stride = 0;     // distance between rows, in elements
  int64_t n = 0, o = 0, i = 0;
  float beta = 0;        // 0 or 1; with 0, out is not read
  float* out = nullptr;  // [o, i]
};

// c[m, n] = a b^T + beta c, all column-major: a[m, k], b[n, k].
struct GemmCall {
  int64_t m, n, k;
  const void* a;
  int64_t lda;
  const void* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
};

inline GemmCall gemm_call(const WeightProduct& p) {
  return {p.i, p.o, p.n, p.x, p.x_stride, p.dy, p.dy_stride, p.out, p.i};
}

}  // namespace braid::kernels
