// Sums over the rows of a matrix, in one pass over memory: the gradient of a bias.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

// Computes sums_c = beta * sums_c + the sum of x_nc's rows; beta is 0 or 1. With 0, sums_c may hold anything.
//
// sums_c: contiguous, of x's type, or float32 for bfloat16 and float16; the sums are computed in its type. x_nc:
// float32, float64, bfloat16 or float16, any strides. On CPUs the bits do not depend on the number of threads: each sum
// adds blocks of 64 rows in order.
void accumulate_row_sum(const at::Tensor& sums_c, const at::Tensor& x_nc, double beta);

}  // namespace braid::kernels
