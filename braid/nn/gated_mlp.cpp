// Autograd around the fused kernel.
#include "braid/nn/gated_mlp.h"

#include "braid/nn/kept.h"
#include "braid/nn/kernels/swiglu.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct SwiGlu : Function<SwiGlu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate_up) {
    ctx->save_for_backward({gate_up});
    return kernels::swiglu(gate_up.contiguous());
  }
  // The gradient takes the place of the rows. A second backward finds them changed and fails.
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const at::Tensor d_gate_up = ctx->get_saved_variables()[0].detach();
    kernels::swiglu_backward_(d_gate_up, grads[0].contiguous());
    d_gate_up.unsafeGetTensorImpl()->bump_version();
    return {d_gate_up};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_up_btf) { return SwiGlu::apply(gate_up_btf); }

at::Tensor GatedMlp::forward(const Activation& x_btc, const Microbatch& microbatch) const {
  const at::Tensor gate_up = gate_up_.forward(x_btc, microbatch);
  Activation y = swiglu(gate_up);
  if (keep_ == Keep::Selected) y.again = [gate_up = gate_up.detach()] { return kernels::swiglu(gate_up); };
  return down_.forward(y, microbatch);
}

}  // namespace braid::nn
