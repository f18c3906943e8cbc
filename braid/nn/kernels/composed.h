// The fused kernels composed of LibTorch's operations, for devices without kernels of braid's, or without one of these.
// The contracts are those of norm.h, activations.h and rotary.h. They take several passes over memory.
#pragma once

#include "braid/nn/kernels/activations.h"
#include "braid/nn/kernels/norm.h"
#include "braid/nn/kernels/rotary.h"

namespace braid::kernels::composed {

Normed norm_forward(const Addends& addends, const NormParams& params);
NormGradients norm_backward(const NormCotangents& cotangents, const Normed& normed, const NormParams& params);
at::Tensor sum_of(const Addends& addends);

at::Tensor bias_gelu(const at::Tensor& h, const at::Tensor& bias, GeluForm form = GeluForm::Tanh);
at::Tensor bias_gelu_backward_(const at::Tensor& h, const at::Tensor& bias, const at::Tensor& dy,
                               GeluForm form = GeluForm::Tanh);

at::Tensor swiglu(const at::Tensor& gate_up);
void swiglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy);

at::Tensor geglu(const at::Tensor& gate_up);
void geglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy);

void rotate_(const at::Tensor& x_btc, const Rotation& rotation, Turn turn);

}  // namespace braid::kernels::composed
