// Activation functions of feed-forward branches, one pass over memory each way. No autograd and no queue: mlp.h adds
// those.
//
// Contiguous tensors of float32, float64, bfloat16 or float16, all of one dtype. Computed in float32 (float64 for
// float64) and rounded once. Results do not depend on the number of threads. check() fails on other tensors. CUDA
// tensors go to on_device.h where libbraid_cuda.so is loaded, tensors of other devices to composed.h.
//
// Sources: Hendrycks & Gimpel, "Gaussian Error Linear Units" (2016); Shazeer, "GLU Variants Improve Transformer"
// (2020).
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

// Returns silu(gate) * up, fresh, [.., f]. gate_up: [.., 2 f], a row is [gate | up].
at::Tensor swiglu(const at::Tensor& gate_up);

// Overwrites `gate_up` with its own gradient.
void swiglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy);

// Returns gelu(h + bias) in its tanh form, fresh. h: [.., c], bias: [c].
at::Tensor bias_gelu(const at::Tensor& h, const at::Tensor& bias);

// Overwrites `h` with its own gradient, dy gelu'(h + bias). Returns the bias's, [c] of float32 or float64.
at::Tensor bias_gelu_backward_(const at::Tensor& h, const at::Tensor& bias, const at::Tensor& dy);

}  // namespace braid::kernels
