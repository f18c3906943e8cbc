// The feed-forward layers: two products, and between them SwiGLU or bias + GELU, in one pass in each direction.
#include "braid/nn/mlp.h"

#include "braid/nn/kept.h"
#include "braid/nn/kernels/activations.h"

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
  // Writes the gradient over the saved rows. A second backward finds them changed and fails.
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

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct BiasGelu : Function<BiasGelu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& h, const at::Tensor& bias,
                            const GradTarget& target) {
    keep(ctx, target);
    ctx->save_for_backward({h, bias});
    return kernels::bias_gelu(h, bias);
  }

  // Writes the gradient over h, which nothing else reads. A second backward finds h changed and fails.
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor dh = saved[0].detach();
    push_value(kept<GradTarget>(ctx), kernels::bias_gelu_backward_(dh, saved[1], grads[0].contiguous()));
    dh.unsafeGetTensorImpl()->bump_version();
    return {dh, {}, {}};
  }
};

ParallelLinearOptions without_bias(ParallelLinearOptions options) {
  options.bias = nullptr;
  return options;
}

}  // namespace

Mlp::Mlp(const Options& options, const RankContext& rank)
    : up_(without_bias(options.up), rank), up_bias_(options.up.bias), down_(options.down, rank), rank_(rank) {}

at::Tensor Mlp::forward(const Activation& x_btc, const Microbatch& microbatch) const {
  const GradTarget target{&rank_.weight_grads, {up_bias_, 0}, microbatch.micro};
  const at::Tensor& bias = up_bias_->data;
  const at::Tensor h = up_.forward(x_btc, microbatch);
  Activation y = BiasGelu::apply(h, bias, target);
  if (rank_.keep == Keep::Selected) {
    y.again = [h = h.detach(), bias = bias.detach()] { return kernels::bias_gelu(h, bias); };
  }
  return down_.forward(y, microbatch);
}

}  // namespace braid::nn
