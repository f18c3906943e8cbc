// Views of the fused projection go straight into LibTorch's attention, whose CPU kernel (float32 and float64) is the
// flash one: it never forms the t x t scores, and its backward gives the same bits every time.
#include "braid/nn/attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>

namespace braid {

at::Tensor Attention::forward(const at::Tensor& x_btc, const Microbatch& microbatch) const {
  const int64_t b = x_btc.size(0), t = x_btc.size(1);
  const at::Tensor qkv = qkv_.forward(x_btc, microbatch);
  // h heads of d features: b t 3 h d -> 3 of b h t d. unbind, whose backward is one copy; three slices would each
  // make a gradient of full size.
  const std::vector<at::Tensor> qkv_bhtd = qkv.view({b, t, 3, local_heads_, -1}).permute({2, 0, 3, 1, 4}).unbind(0);
  const at::Tensor y_bhtd =
      at::scaled_dot_product_attention(qkv_bhtd[0], qkv_bhtd[1], qkv_bhtd[2], {}, 0.0, /*is_causal=*/true);
  return projection_.forward(y_bhtd.transpose(1, 2).reshape({b, t, -1}), microbatch);
}

}  // namespace braid
