// Attention with capped scores on CPUs: softmax(cap tanh(scale q . k / cap)) v, forward and backward, tile by tile. No
// t x t matrix is kept. Source: Gemma Team, "Gemma 2" (2024), section 2; Dao et al., "FlashAttention" (2022).
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

struct CappedAttention {
  int64_t heads, kv_heads;
  double cap;    // at most kMostCap (capped_rows.h)
  double scale;  // factor of q . k
  // int64, neither falling along t: query i of its sequence sees keys first .. end - 1, at least one.
  at::Tensor first_bt, end_bt;
};

// Queries of b sequences, t of each, and keys and values of s tokens of each: rows of one head after another, float32,
// float64, bfloat16 or float16, the last dim contiguous. Each group of heads / kv_heads query heads shares a head of
// keys and values.
struct CappedTensors {
  at::Tensor q_btf, k_bsf, v_bsf;
};

// The outputs of the heads, b x t x (heads x features), and for each row of softmax the logarithm of its sum, float32
// (float64 for float64). The arithmetic has the type of the logarithms, and results are rounded once.
struct CappedOutput {
  at::Tensor y_btf, norm_bht;
};

CappedOutput capped_attention(const CappedTensors& x, const CappedAttention& call);

// Writes the gradients of `x` into `gradients`, given that of y_btf. As in LibTorch's products, their bits may depend
// on the number of threads.
void capped_attention_backward(const CappedTensors& x, const CappedAttention& call, const CappedOutput& output,
                               const at::Tensor& dy_btf, const CappedTensors& gradients);

}  // namespace braid::kernels
