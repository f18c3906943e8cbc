// One kernel, three ways to call it.
#include "braid/nn/rms_norm.h"

namespace braid::nn {

NormCall RmsNorm::call(const Microbatch& microbatch) const {
  return {kernels::NormKind::Rms, options_.weight,  nullptr,   options_.eps,
          &rank_.weight_grads,    microbatch.micro, rank_.keep};
}

at::Tensor RmsNorm::forward(const at::Tensor& x_btc, const Microbatch& microbatch) const {
  return open(x_btc, microbatch).normed_btc.value;
}

Residual RmsNorm::open(const at::Tensor& residual_btc, const Microbatch& microbatch) const {
  return norm_residual(residual_btc, call(microbatch));
}

Residual RmsNorm::join(const at::Tensor& residual_btc, const Branch& branch, const Microbatch& microbatch) const {
  return join_and_norm(residual_btc, branch, call(microbatch));
}

}  // namespace braid::nn
