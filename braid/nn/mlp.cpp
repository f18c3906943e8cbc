// Two products, and the bias and the GELU between them in one pass each way.
#include "braid/nn/mlp.h"

#include "braid/nn/kept.h"
#include "braid/nn/kernels/gelu.h"

namespace braid::nn {
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

  // The gradient takes the place of h, which nothing else reads. A second backward finds h changed and fails.
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
