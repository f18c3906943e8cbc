// Attention with capped scores on CPUs: softmax(cap tanh(scale q . k / cap)) v, forward and backward, tile by tile. No
// t x t matrix is kept. Source: Gemma Team, "Gemma 2" (2024), section 2; Dao et al., "FlashAttention" (2022).
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::kernels {

struct CappedAttention {
  int64_t heads, kv_heads;
  double cap;                // at most kMostCap (capped_rows.h)
  double scale;              // factor of q . k
  at::Tensor first_seen_bt;  // int64, not falling along t: token i attends to tokens first_seen .. i of its sequence
};

// The outputs of the heads, b x t x (heads x features), and for each row of softmax the logarithm of its sum, float32
// (float64 for float64). The arithmetic has the type of the logarithms, and results are rounded once.
struct CappedOutput {
  at::Tensor y_btf, norm_bht;
};

// qkv_btf: contiguous rows of [queries | keys | values], each one head after another; float32, float64, bfloat16 or
// float16. Each group of heads / kv_heads query heads shares a head of keys and values.
CappedOutput capped_attention(const at::Tensor& qkv_btf, const CappedAttention& call);

// Returns the gradient of qkv_btf, given that of y_btf. As in LibTorch's products, its bits may depend on the number of
// threads.
at::Tensor capped_attention_backward(const at::Tensor& qkv_btf, const CappedAttention& call, const CappedOutput& output,
                                     const at::Tensor& dy_btf);

}  // namespace braid::kernels
