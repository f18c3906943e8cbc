// The activation functions of feed-forward branches, in one pass in each direction. Backward overwrites the input,
// which is kept for it. REQUIRES: nothing else reads the input, which is contiguous.
#pragma once

#include "braid/nn/activation.h"
#include "braid/nn/kernels/activations.h"
#include "braid/nn/weight_grads.h"

namespace braid::nn {

// Returns silu(g) * u of rows [g | u], where g and u have equal extents. With Keep::Selected the output can be
// recomputed. Source: Shazeer, "GLU Variants Improve Transformer" (2020), SwiGLU.
Activation swiglu(const at::Tensor& gate_up_btf, Keep keep);
// The same with a GELU in its tanh form as the gate (kernels::geglu()).
Activation geglu(const at::Tensor& gate_up_btf, Keep keep);

// Returns gelu(h + bias), where `bias` names the parameter [f] and receives its gradient. With Keep::Selected the
// output can be recomputed. Source: Hendrycks & Gimpel, "GELU" (2016).
Activation bias_gelu(const at::Tensor& h_btf, const GradTarget& bias, Keep keep,
                     kernels::GeluForm form = kernels::GeluForm::Tanh);

}  // namespace braid::nn
