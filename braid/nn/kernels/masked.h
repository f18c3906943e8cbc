// Dropout on CPUs: the mask that a key gives, and its product with a tensor, in one pass over memory each. dropout.h
// adds autograd. Results do not depend on the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "braid/nn/kernels/token_part.h"

namespace braid::kernels {

// The inputs of a mask. An element is true with probability `keep`, as a function of (key, place, element), the same
// function as in on_device::keep_mask(). place < 2^32 - 1.
struct HostMaskDraw {
  uint64_t key = 0, place = 0;
  double keep = 1;
  TokenPart tokens;
};
// Returns a bool tensor of the shape of `like`, a CPU tensor. If that has a part of the tokens, [.., t, c], it is the
// mask's part.
at::Tensor keep_mask(const at::Tensor& like, const HostMaskDraw& draw);

// Returns a new tensor: scale x where the mask is true, else 0 x. x: contiguous, float32, float64, bfloat16 or float16.
// The arithmetic is float32 (float64 for float64), rounded once.
at::Tensor masked(const at::Tensor& x, const at::Tensor& mask, double scale);

}  // namespace braid::kernels
