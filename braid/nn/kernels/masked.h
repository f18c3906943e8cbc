// Dropout on CPUs: the mask that a key gives, and its product with a tensor, in one pass over memory each. dropout.h
// adds autograd. Results do not depend on the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace braid::kernels {

// Returns a bool tensor of the shape of `like`, a CPU tensor. An element is true with probability `keep`, as a function
// of (key, place, element), the same function as in on_device::keep_mask(). place < 2^32 - 1.
at::Tensor keep_mask(const at::Tensor& like, uint64_t key, uint64_t place, double keep);

// Returns a new tensor: scale x where the mask is true, else 0 x. x: contiguous, float32, float64, bfloat16 or float16.
// The arithmetic is float32 (float64 for float64), rounded once.
at::Tensor masked(const at::Tensor& x, const at::Tensor& mask, double scale);

}  // namespace braid::kernels
