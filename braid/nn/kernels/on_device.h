// The fused kernels in libbraid_cuda.so, for tensors on a CUDA device. The contracts are those of norm.h,
// activations.h, rotary.h, cross_entropy.h, row_sum.h, scatter.h and product.h. No function waits for the device. The
// order of sums depends only on sizes, so results are the same in every run.
#pragma once

#include "braid/nn/kernels/cross_entropy.h"
#include "braid/nn/kernels/norm.h"
#include "braid/nn/kernels/rotary.h"
#include "braid/nn/kernels/token_part.h"

namespace braid::kernels::on_device {

// Returns true if `x` is on a CUDA device and the library is loaded. All functions below take such tensors only.
bool takes(const at::Tensor& x);

Normed norm_forward(const Addends& addends, const NormParams& params);
NormGradients norm_backward(const NormCotangents& cotangents, const Normed& normed, const NormParams& params);
at::Tensor sum_of(const Addends& addends);

at::Tensor bias_gelu(const at::Tensor& h, const at::Tensor& bias);
at::Tensor bias_gelu_backward_(const at::Tensor& h, const at::Tensor& bias, const at::Tensor& dy);

at::Tensor swiglu(const at::Tensor& gate_up);
void swiglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy);

void rotate_(const at::Tensor& x_btc, const Rotation& rotation, Turn turn);

SoftmaxSums softmax_sums(const at::Tensor& logits_nv, int64_t real, const at::Tensor& column_n);
void softmax_gradient_(const at::Tensor& logits_nv, const SoftmaxGradient& of);

void accumulate_row_sum(const at::Tensor& sums_c, const at::Tensor& x_nc, double beta);
void add_rows_(const at::Tensor& table_vc, const at::Tensor& x_nc, const at::Tensor& rows_n);
// The operands are bfloat16 or float16, and the slot is float32.
void accumulate_product(const at::Tensor& slot_oi, const at::Tensor& dy_no, const at::Tensor& x_ni, double beta);

// The inputs of a mask. key_1: one int64 on the device, so that every replay of a recorded graph can use another key.
struct MaskDraw {
  at::Tensor key_1;
  uint64_t place = 0;
  double keep = 1;
  TokenPart tokens;
};
// Returns a bool tensor of the shape and device of `like`. An element is true with probability `keep`, as a function of
// (key, place, element). If `like` has a part of the tokens, [.., t, c], it is the mask's part.
at::Tensor keep_mask(const at::Tensor& like, const MaskDraw& draw);

}  // namespace braid::kernels::on_device
