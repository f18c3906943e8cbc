// Columns made orthonormal, with the same bits wherever the same input is given.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::sync {

// `columns`: [rows, few], contiguous, float32 or float64; in place. Gram-Schmidt, each column twice (Giraud et al.
// 2005: twice is enough). A column that depends on those before it, but for rounding, becomes zero.
void make_orthonormal(const at::Tensor& columns);

}  // namespace braid::sync
