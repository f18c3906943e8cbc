// The autograd functions around the activation kernels.
#include "braid/nn/activation_functions.h"

#include "braid/nn/kept.h"
#include "braid/nn/kernels/activations.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// The backwards write the gradient over the saved rows. A second backward finds them changed and fails.
template <at::Tensor (*kForward)(const at::Tensor&), void (*kBackward)(const at::Tensor&, const at::Tensor&)>
struct Gated : Function<Gated<kForward, kBackward>> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate_up) {
    ctx->save_for_backward({gate_up});
    return kForward(gate_up.contiguous());
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const at::Tensor d_gate_up = ctx->get_saved_variables()[0].detach();
    kBackward(d_gate_up, grads[0].contiguous());
    d_gate_up.unsafeGetTensorImpl()->bump_version();
    return {d_gate_up};
  }
  // The activation, which is recomputed with Keep::Selected.
  static Activation of(const at::Tensor& gate_up, Keep keep) {
    Activation y = Gated::apply(gate_up);
    if (keep == Keep::Selected) y.again = [x = SavedTensor(gate_up)] { return kForward(x.tensor()); };
    return y;
  }
};

struct GeluCall {
  GradTarget bias;
  kernels::GeluForm form;
};

struct BiasGelu : Function<BiasGelu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& h, const at::Tensor& bias, const GeluCall& call) {
    keep(ctx, call);
    ctx->save_for_backward({h, bias});
    return kernels::bias_gelu(h, bias, call.form);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor dh = saved[0].detach();
    const auto& [bias, form] = kept<GeluCall>(ctx);
    push_value(bias, kernels::bias_gelu_backward_(dh, saved[1], grads[0].contiguous(), form));
    dh.unsafeGetTensorImpl()->bump_version();
    return {dh, {}, {}};
  }
};

}  // namespace

Activation swiglu(const at::Tensor& gate_up_btf, Keep keep) {
  return Gated<kernels::swiglu, kernels::swiglu_backward_>::of(gate_up_btf, keep);
}

Activation geglu(const at::Tensor& gate_up_btf, Keep keep) {
  return Gated<kernels::geglu, kernels::geglu_backward_>::of(gate_up_btf, keep);
}

Activation bias_gelu(const at::Tensor& h_btf, const GradTarget& bias, Keep keep, kernels::GeluForm form) {
  const at::Tensor& bias_f = bias.param.param->data;
  Activation y = BiasGelu::apply(h_btf, bias_f, GeluCall{bias, form});
  if (keep == Keep::Selected) {
    y.again = [h = SavedTensor(h_btf), b = bias_f.detach(), form] { return kernels::bias_gelu(h.tensor(), b, form); };
  }
  return y;
}

}  // namespace braid::nn
