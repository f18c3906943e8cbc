// The matrix products, and the bias that is added after an all-reduce.
#include "braid/nn/linear.h"

#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "braid/base/errors.h"
#include "braid/model/families.h"
#include "braid/nn/kept.h"
#include "braid/nn/kernels/product.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

at::Tensor rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// Returns a new tensor with the sizes of `like`, except for the last, which is `last`. It is no view, so later in-place
// work on it is allowed.
at::Tensor empty_with_last(const at::Tensor& like, int64_t last, at::ScalarType type) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.back() = last;
  return at::empty(sizes, like.options().dtype(type));
}

struct LinearState {
  LinearCall call;
  Activation::Again again;  // empty: x is saved, if its product with dY is needed
  std::function<Activation::Again()> start_again;
  at::ScalarType x_type;

  bool saves_input() const { return call.weight.param->is_trained() && !again; }
};

struct Linear : Function<Linear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const std::optional<at::Tensor>& /*trained*/,
                            const LinearState& state) {
    keep(ctx, state);
    const LinearCall& call = state.call;
    const at::Tensor& weight = call.weight.param->data;
    // x is saved as rows, so that it is copied at most once. It is detached because a view keeps its base alive, with
    // the base's graph, and the queue would hold the view.
    const at::ScalarType type = weight.scalar_type();
    const at::Tensor x_ni = rows(x.detach().to(type));
    ctx->save_for_backward({state.saves_input() ? x_ni : at::Tensor(), weight});
    at::Tensor y = empty_with_last(x, weight.size(0), call.is_part ? at::toOpMathType(type) : type);
    multiply(rows(y), x_ni, weight.t(), *call.queue, call.inner, call.bias ? call.bias->data : at::Tensor());
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    auto& [call, again, start_again, x_type] = kept<LinearState>(ctx);
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& weight = saved[1];
    const at::Tensor dy_no = rows(grads[0].to(weight.scalar_type()));
    if (start_again && call.queue->overlap() == param::ReductionOverlap::On) {
      again = std::exchange(start_again, nullptr)();
    }
    at::Tensor dx;
    if (ctx->needs_input_grad(0)) {
      if (call.sums_gradient) call.queue->defer();
      dx = empty_with_last(grads[0], weight.size(1), x_type);
      multiply(rows(dx), dy_no, weight, *call.queue, call.outputs);
    }
    if (call.weight.param->is_trained()) {
      const at::Tensor x_ni = again ? rows(std::exchange(again, nullptr)()) : saved[0];
      start_again = nullptr;  // frees its tensor, which the graph's node would keep until the weight-gradient pass
      check(x_ni.defined(), "the backward of a product whose input is made again runs once");
      push_product({call.queue, call.weight, call.micro}, dy_no, x_ni);
    }
    if (call.bias) push_row_sum({call.queue, {call.bias, 0}, call.micro}, dy_no);
    return {dx, {}, {}};
  }
};

struct AddBias : Function<AddBias> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& y, const at::Tensor& bias,
                            const GradTarget& target) {
    keep(ctx, target);
    ctx->mark_dirty({y});
    return y.add_(bias);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    push_token_sum(kept<GradTarget>(ctx), grads[0]);
    return {std::move(grads[0]), {}, {}};
  }
};

}  // namespace

Rows rows_of(const at::Tensor& x, const Microbatch& microbatch) {
  return microbatch.cache && x.size(-2) == 1 ? Rows::Each : Rows::Together;
}

kernels::InnerParts inner_parts(const ModelSpec& spec, const model::Dim& dim, const RankContext& rank) {
  const layout::TensorParts& parts = rank.weight_grads.parts();
  if (!parts || layout::split_letters({dim}).empty()) return {};
  model::Extents extents = model::extents_of(spec, 1, 1);
  extents.split_over(rank.tensor.size());
  return {parts.of_rank, extents.segments(dim)};
}

at::Tensor linear(const Activation& x, const LinearCall& call) {
  if (call.rows == Rows::Each) {
    return kernels::row_product(x.value.contiguous(), call.weight.param->data,
                                call.bias ? call.bias->data : at::Tensor());
  }
  const auto trained = any_trained({call.weight.param, call.bias});
  if (!call.weight.param->is_trained()) {
    return Linear::apply(x.value, trained, LinearState{call, nullptr, nullptr, x.value.scalar_type()});
  }
  return Linear::apply(x.value, trained, LinearState{call, x.again, x.start_again, x.value.scalar_type()});
}

at::Tensor add_bias_(const at::Tensor& y, const GradTarget& bias) {
  return AddBias::apply(y, bias.param.param->data, bias);
}

}  // namespace braid::nn
