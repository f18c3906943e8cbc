// Adds rows to rows of a table: the gradient of an embedding.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

// Computes table_vc[rows_n[k]] += x_nc[k] for k = 0, 1, ..; a row may occur several times.
//
// table_vc: contiguous, of x's type, or float32 for bfloat16 and float16. x_nc: float32, float64, bfloat16 or float16,
// any strides. rows_n: int64. REQUIRES: rows_n are rows of the table. On CPUs the bits do not depend on the number of
// threads: the columns are divided among threads, and each thread adds in the order of k.
void add_rows_(const at::Tensor& table_vc, const at::Tensor& x_nc, const at::Tensor& rows_n);

}  // namespace braid::kernels
