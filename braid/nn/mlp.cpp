// Two products and LibTorch's GELU between them.
#include "braid/nn/mlp.h"

#include <ATen/ops/gelu.h>

namespace braid {

at::Tensor Mlp::forward(const at::Tensor& x_btc, const Microbatch& microbatch) const {
  return down_.forward(at::gelu(up_.forward(x_btc, microbatch), "tanh"), microbatch);
}

}  // namespace braid
