// The function's own graph inside one node of the model's.
#include "braid/nn/opaque.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "braid/base/errors.h"
#include "braid/nn/kept.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct OpaqueCall {
  const model::OpaqueFunction* function;
  std::vector<GradTarget> params;
  bool gradients;  // whether a backward may follow
};

struct OpaqueState {
  std::vector<GradTarget> params;
  variable_list leaves;  // x and the parameters
  at::Tensor y;          // undefined once backward has run
};

struct Opaque : Function<Opaque> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& any_param,
                            const OpaqueCall& call) {
    variable_list leaves{x.detach()};
    for (const GradTarget& target : call.params) leaves.push_back(target.param.param->data.detach());
    const c10::AutoGradMode grad(call.gradients);
    if (call.gradients) {
      for (at::Tensor& leaf : leaves) leaf.requires_grad_(true);
    }
    const at::Tensor y = call.function->forward(leaves[0], {leaves.begin() + 1, leaves.end()});
    if (call.gradients) keep(ctx, OpaqueState{call.params, std::move(leaves), y});
    return y.detach();
  }

  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    OpaqueState& state = kept<OpaqueState>(ctx);
    check(state.y.defined(), "the backward of an opaque op runs once");
    const variable_list d =
        torch::autograd::grad({std::exchange(state.y, {})}, std::exchange(state.leaves, {}), {grads[0]});
    for (size_t i = 0; i < state.params.size(); ++i) push_value(state.params[i], d[i + 1]);
    return {d[0], {}, {}};
  }
};

}  // namespace

at::Tensor opaque(const model::OpaqueFunction& function, const at::Tensor& x, const std::vector<GradTarget>& params) {
  const at::Tensor any_param = params.empty() ? at::Tensor() : params[0].param.param->data;
  return Opaque::apply(x, any_param, OpaqueCall{&function, params, c10::GradMode::is_enabled()});
}

}  // namespace braid::nn
