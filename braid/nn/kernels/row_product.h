// The product of a layer on few rows, such as one token of each of some sequences: it reads the weight once, at the
// speed of memory.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

// x weight^T + bias. x: [.., i], weight_oi, bias_o (or undefined): contiguous CPU tensors of one floating type. A row's
// bits depend neither on the rows beside it nor on the number of threads. Low precision is added up in float32.
at::Tensor row_product(const at::Tensor& x, const at::Tensor& weight_oi, const at::Tensor& bias_o);

}  // namespace braid::kernels
