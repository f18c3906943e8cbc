// Dropout on CPUs: the mask of a key, and its product with a tensor, one pass over memory each. No autograd: dropout.h
// adds that. Results do not depend on the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace braid::kernels {

// bool, shaped as `like`, a CPU tensor: true with the probability `keep`, a function of (key, place, element): that of
// on_device::keep_mask(). place < 2^32 - 1.
at::Tensor keep_mask(const at::Tensor& like, uint64_t key, uint64_t place, double keep);

// scale x where the mask is true, else 0 x; fresh. x: contiguous, float32, float64, bfloat16 or float16, computed in
// float32 (float64 for float64) and rounded once.
at::Tensor masked(const at::Tensor& x, const at::Tensor& mask, double scale);

}  // namespace braid::kernels
