// Matrix products of layers. Forward and input-gradient products round once, to the operands' type. Weight-gradient
// products are summed in the slot's own precision.
//
// Shapes: n rows (b x t), i inputs, o outputs.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

// Returns x weight^T + bias, for few rows such as one token of each of some sequences. It reads the weight once, at the
// speed of memory. x: [.., i], weight_oi and bias_o (or undefined): contiguous CPU tensors of one floating type. A
// row's bits depend neither on the other rows nor on the number of threads. Low precision is summed in float32.
at::Tensor row_product(const at::Tensor& x, const at::Tensor& weight_oi, const at::Tensor& bias_o);

// Returns true if LibTorch multiplies matrices of this type on CPUs with native instructions: float32 and float64
// always, bfloat16 on x86-64 with AVX512-BF16, float16 nowhere. Without them, its loops take 20 to 60 times as long as
// float32.
bool multiplies_on_cpu(at::ScalarType type);

// Computes out = a b, and adds bias to every row if it is defined. out [n, o], a [n, k], b [k, o] and bias [o] have one
// floating type and any strides. If multiplies_on_cpu() is false for the type, CPUs widen panels of the operands to
// float32 and round each element of the float32 product once. The result depends on the number of threads no more than
// LibTorch's own products do.
void product_out(at::Tensor out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias = {});

// Computes slot = beta * slot + dy^T x; beta is 0 or 1. With 0 the slot may hold anything, NaN included.
//
// slot_oi: float32 or float64, contiguous. dy_no and x_ni: both of the slot's type, or both bfloat16 or both float16
// with a float32 slot; any strides. Products of low precision are summed in float32, without intermediate rounding. On
// CPUs with AVX512-BF16, bfloat16 has a kernel of its own, whose result does not depend on the number of threads. Other
// CPUs widen the operands; on CUDA the library's product writes float32.
void accumulate_product(const at::Tensor& slot_oi, const at::Tensor& dy_no, const at::Tensor& x_ni, double beta);
// The same on CPUs, with bits that depend neither on the number of outputs and inputs nor on the number of threads.
void accumulate_product_in_order(const at::Tensor& slot_oi, const at::Tensor& dy_no, const at::Tensor& x_ni,
                                 double beta);

}  // namespace braid::kernels
