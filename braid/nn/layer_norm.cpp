// LibTorch's kernels, with the weight gradients led to the queue.
#include "braid/nn/layer_norm.h"

#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>

#include "braid/nn/kept.h"

namespace braid {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct NormCall {
  LayerNorm::Options options;
  WeightGradQueue* queue;
  int micro;
};

struct Norm : Function<Norm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight, const NormCall& call) {
    keep(ctx, call);
    auto [y, mean, rstd] =
        at::native_layer_norm(x, x.sizes().slice(x.dim() - 1), weight, call.options.bias->data, call.options.eps);
    ctx->save_for_backward({x, weight, mean, rstd});
    return y;
  }

  // One kernel makes all three gradients in one pass over x and dY. Waiting with the two small vectors would keep x and
  // dY alive and read them again, so the queue only gets their sums.
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const NormCall& call = kept<NormCall>(ctx);
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &rstd = saved[3];
    auto [dx, dweight, dbias] =
        at::native_layer_norm_backward(grads[0].contiguous(), x, x.sizes().slice(x.dim() - 1), mean, rstd, weight,
                                       call.options.bias->data, {ctx->needs_input_grad(0), true, true});
    push_value({call.queue, {call.options.weight, 0}, call.micro}, dweight);
    push_value({call.queue, {call.options.bias, 0}, call.micro}, dbias);
    return {dx, {}, {}};
  }
};

}  // namespace

at::Tensor LayerNorm::forward(const at::Tensor& x_btc, const Microbatch& microbatch) const {
  return Norm::apply(x_btc, options_.weight->data, NormCall{options_, &rank_.weight_grads, microbatch.micro});
}

}  // namespace braid
