// Rotary position encoding, in place on heads inside a larger product. braid/nn/rotary.h computes the angles and adds
// autograd.
//
// All tensors are contiguous. x is [b, t, c] of float32, float64, bfloat16 or float16; its first heads x 2 half
// features are rotated, the others stay. cos and sin are [t, half] of float32 (float64 for float64). Features a and b
// of a head that are half a head apart form a pair: (a, b) -> (a cos - b sin, b cos + a sin), rounded once. check()
// fails on other tensors. CUDA tensors go to on_device.h if libbraid_cuda.so is loaded; tensors of other devices go to
// composed.h.
//
// Source: Su et al., "RoFormer" (2021), section 3.2.2, with features paired as in Hugging Face's Llama.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

enum class Turn { Forward, Back };  // Back is the inverse rotation, which the gradient needs

struct Rotation {
  at::Tensor cos, sin;
  int64_t heads = 0;  // number of heads to rotate
};

void rotate_(const at::Tensor& x_btc, const Rotation& rotation, Turn turn);

}  // namespace braid::kernels
