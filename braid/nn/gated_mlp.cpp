// Composed of LibTorch's operations.
#include "braid/nn/gated_mlp.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>

#include "braid/nn/kept.h"

namespace braid {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct SwiGlu : Function<SwiGlu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate_up) {
    ctx->save_for_backward({gate_up});
    const auto halves = gate_up.chunk(2, -1);
    return at::silu(halves[0]).mul_(halves[1]);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const at::Tensor gate_up = ctx->get_saved_variables()[0];
    const auto halves = gate_up.chunk(2, -1);
    const at::Tensor d_gate_up = at::empty_like(gate_up);
    const auto d_halves = d_gate_up.chunk(2, -1);
    d_halves[0].copy_(at::silu_backward(grads[0].mul(halves[1]), halves[0]));
    d_halves[1].copy_(at::silu(halves[0]).mul_(grads[0]));
    return {d_gate_up};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_up_btf) { return SwiGlu::apply(gate_up_btf); }

at::Tensor GatedMlp::forward(const at::Tensor& x_btc, const Microbatch& microbatch) const {
  return down_.forward(swiglu(gate_up_.forward(x_btc, microbatch)), microbatch);
}

}  // namespace braid
