// Linear and the bias that follows a reduction.
#include "braid/nn/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "braid/nn/kept.h"

namespace braid {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

at::Tensor rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// A fresh tensor shaped as `like` but for its last extent. Not a view, so that later in-place work on it is legal.
at::Tensor empty_with_last(const at::Tensor& like, int64_t last) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.back() = last;
  return at::empty(sizes, like.options());
}

struct Linear : Function<Linear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const LinearCall& call) {
    keep(ctx, call);
    // Saved as rows: made without a graph, so the queue holds no graph alive, and a copy (if any) is made once.
    const at::Tensor x_ni = rows(x);
    ctx->save_for_backward({x_ni, weight});
    at::Tensor y = empty_with_last(x, weight.size(0));
    at::Tensor y_no = rows(y);
    if (call.bias) {
      at::addmm_out(y_no, call.bias->data, x_ni, weight.t());
    } else {
      at::mm_out(y_no, x_ni, weight.t());
    }
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const LinearCall& call = kept<LinearCall>(ctx);
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x_ni = saved[0], &weight = saved[1];
    const at::Tensor dy_no = rows(grads[0]);
    at::Tensor dx;
    if (ctx->needs_input_grad(0)) {
      dx = empty_with_last(grads[0], weight.size(1));
      at::Tensor dx_ni = rows(dx);
      at::mm_out(dx_ni, dy_no, weight);
    }
    push_product({call.queue, call.weight, call.micro}, dy_no, x_ni);
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
    push_row_sum(kept<GradTarget>(ctx), rows(grads[0]));
    return {std::move(grads[0]), {}, {}};
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const LinearCall& call) {
  return Linear::apply(x, call.weight.param->data, call);
}

at::Tensor add_bias_(const at::Tensor& y, const GradTarget& bias) {
  return AddBias::apply(y, bias.param.param->data, bias);
}

}  // namespace braid
