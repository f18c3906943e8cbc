// Activation functions of feed-forward branches, in one pass over memory in each direction.
// nn/activation_functions.h adds autograd and the queue.
//
// All tensors are contiguous, of one dtype: float32, float64, bfloat16 or float16; check() fails on others. The
// arithmetic is float32 (float64 for float64), with one rounding at the end. Results do not depend on the number of
// threads. CUDA tensors go to on_device.h if libbraid_cuda.so is loaded; tensors of other devices go to composed.h, and
// so do all that are not on CPUs in GeGLU.
//
// Sources: Hendrycks & Gimpel, "Gaussian Error Linear Units" (2016); Shazeer, "GLU Variants Improve Transformer"
// (2020).
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

// Returns silu(gate) * up, a new tensor of [.., f]. gate_up: [.., 2 f]; a row is [gate | up].
at::Tensor swiglu(const at::Tensor& gate_up);

// Overwrites `gate_up` with its own gradient.
void swiglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy);

// The same with gelu(gate) in place of silu(gate), in its tanh form.
at::Tensor geglu(const at::Tensor& gate_up);
void geglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy);

// The forms of GELU. Tanh: an approximation. Erf: exact, from the normal distribution's integral; on CUDA it is
// composed of LibTorch's operations.
enum class GeluForm { Tanh, Erf };

// Returns gelu(h + bias), a new tensor. h: [.., c], bias: [c].
at::Tensor bias_gelu(const at::Tensor& h, const at::Tensor& bias, GeluForm form = GeluForm::Tanh);

// Overwrites `h` with its own gradient, dy gelu'(h + bias). Returns the gradient of the bias, [c] of float32 or
// float64.
at::Tensor bias_gelu_backward_(const at::Tensor& h, const at::Tensor& bias, const at::Tensor& dy,
                               GeluForm form = GeluForm::Tanh);

}  // namespace braid::kernels
