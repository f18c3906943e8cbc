// Adds rows to rows of a table: the gradient of an embedding.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

// table_vc[rows_n[k]] += x_nc[k] for k = 0, 1, ..; a row may come several times.
//
// table_vc: contiguous, of x's type or float32 for bfloat16 and float16. x_nc: float32, float64, bfloat16 or float16,
// any strides. rows_n: int64, within the table (the caller has checked). On CPUs the same bits on any number of
// threads: threads share the columns and each adds in the order of k.
void add_rows_(const at::Tensor& table_vc, const at::Tensor& x_nc, const at::Tensor& rows_n);

}  // namespace braid::kernels
