// Composed of LibTorch's operations, with the weight's gradient led to the queue.
//
//   n = x r,  r = (mean x^2 + eps)^-1/2,  y = n w        dx = r (g - n mean(g n)),  g = dy w        dw = sum dy n
#include "braid/nn/rms_norm.h"

#include "braid/nn/kept.h"

namespace braid {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct NormCall {
  RmsNorm::Options options;
  WeightGradQueue* queue;
  int micro;
};

// The type that sums are made in.
at::Tensor wide(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

struct Norm : Function<Norm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight, const NormCall& call) {
    keep(ctx, call);
    const at::Tensor x_wide = wide(x);
    const at::Tensor r = x_wide.square().mean(-1, /*keepdim=*/true).add_(call.options.eps).rsqrt_();
    ctx->save_for_backward({x, weight, r});
    return x_wide.mul(r).mul_(weight).to(x.scalar_type());
  }

  // The queue gets the weight's sum, not x and dY, which it would keep alive.
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const NormCall& call = kept<NormCall>(ctx);
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &r = saved[2];
    const at::Tensor n = wide(x).mul(r), dy = wide(grads[0]);
    push_value({call.queue, {call.options.weight, 0}, call.micro}, dy.mul(n).reshape({-1, n.size(-1)}).sum(0));
    if (!ctx->needs_input_grad(0)) return {{}, {}, {}};
    const at::Tensor g = dy.mul(weight);
    const at::Tensor dx = g.sub(n.mul(g.mul(n).mean(-1, /*keepdim=*/true))).mul_(r);
    return {dx.to(x.scalar_type()), {}, {}};
  }
};

}  // namespace

at::Tensor RmsNorm::forward(const at::Tensor& x_btc, const Microbatch& microbatch) const {
  return Norm::apply(x_btc, options_.weight->data, NormCall{options_, &rank_.weight_grads, microbatch.micro});
}

}  // namespace braid
