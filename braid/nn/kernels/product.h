// Matrix products of layers. Forward and input-gradient products round to the operands' type once; weight-gradient
// products are summed in the slot's own precision.
//
// n rows (b x t), i inputs, o outputs.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

// The product of a layer on few rows, such as one token of each of some sequences: it reads the weight once, at the
// speed of memory.

// x weight^T + bias. x: [.., i], weight_oi, bias_o (or undefined): contiguous CPU tensors of one floating type. A row's
// bits depend neither on the rows beside it nor on the number of threads. Low precision is added up in float32.
at::Tensor row_product(const at::Tensor& x, const at::Tensor& weight_oi, const at::Tensor& bias_o);

// Returns true if LibTorch multiplies matrices of this type on CPUs by instructions made for it: float32 and float64
// always, bfloat16 on x86-64 with AVX512-BF16, float16 nowhere. Elsewhere its loops take 20 to 60 times as long as
// float32.
bool multiplies_on_cpu(at::ScalarType type);

// out = a b, plus bias in every row where it is defined. out [n, o], a [n, k], b [k, o] and bias [o] have one floating
// type; any strides. On CPUs that do not multiply the type, panels of the operands are widened to float32, and each
// element of the float32 product is rounded once. The result does not depend on the number of threads by more than
// LibTorch's own products do.
void product_out(at::Tensor out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias = {});

// slot = beta * slot + dy^T x; beta is 0 or 1, and with 0 the slot may hold anything, NaN included.
//
// slot_oi: float32 or float64, contiguous. dy_no and x_ni: both of the slot's type, or both bfloat16 or float16 with a
// float32 slot; any strides. Products of low precision are added up in float32 and never rounded to it on the way.
// bfloat16 on a CPU with AVX512-BF16 has a kernel of its own, whose result does not depend on the number of threads;
// elsewhere on CPUs the operands are widened, on CUDA the library's product writes float32.
void accumulate_product(const at::Tensor& slot_oi, const at::Tensor& dy_no, const at::Tensor& x_ni, double beta);

}  // namespace braid::kernels
