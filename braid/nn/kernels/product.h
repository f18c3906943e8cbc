// The product behind every weight gradient, summed in the slot's own precision whatever the operands are in.
// It knows no parameter and no queue.
//
// n rows (b x t), i inputs, o outputs.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

// slot = beta * slot + dy^T x; beta is 0 or 1, and with 0 the slot may hold anything, NaN included.
//
// slot_oi: float32 or float64, contiguous. dy_no and x_ni: both of the slot's type, or both bfloat16 or float16 with a
// float32 slot; any strides. Products of low precision are added up in float32 and never rounded to it on the way.
// bfloat16 on a CPU with AVX512-BF16 has a kernel of its own, whose result does not depend on the number of threads;
// elsewhere on CPUs the operands are widened, on CUDA the library's product writes float32.
void accumulate_product(const at::Tensor& slot_oi, const at::Tensor& dy_no, const at::Tensor& x_ni, double beta);

}  // namespace braid::kernels
