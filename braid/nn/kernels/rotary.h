// Rotary position encoding, in place on heads inside a larger product. No autograd, and no knowledge of how the angles
// come about: braid/nn/rotary.h.
//
// Contiguous tensors: x [b, t, c] of float32, float64, bfloat16 or float16, whose first heads x 2 half features are
// turned and whose others stay; cos and sin [t, half] of float32 (float64 for float64). A head's features a and b half
// a head apart are a pair: (a, b) -> (a cos - b sin, b cos + a sin), rounded once. check() fails on other tensors. CUDA
// tensors go to on_device.h where libbraid_cuda.so is loaded, tensors of other devices to composed.h.
//
// Source: Su et al., "RoFormer" (2021), section 3.2.2, with the pairs of Hugging Face's Llama.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

enum class Turn { Forward, Back };  // Back is the inverse, and the gradient's

struct Rotation {
  at::Tensor cos, sin;
  int64_t heads = 0;  // to turn
};

void rotate_(const at::Tensor& x_btc, const Rotation& rotation, Turn turn);

}  // namespace braid::kernels
