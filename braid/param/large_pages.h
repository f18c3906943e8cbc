// Memory that is read from end to end again and again, on pages of the processor's larger size: with small ones,
// finding them takes as long as reading them (bench/generation).
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::param {

// Contiguous CPU memory without values. The system is asked for large pages where the tensor fills one; where it has
// none, they are small.
at::Tensor empty_on_large_pages(at::IntArrayRef sizes, const at::TensorOptions& options);

}  // namespace braid::param
