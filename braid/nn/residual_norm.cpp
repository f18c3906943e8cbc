// The autograd functions around the fused norm kernels.
#include "braid/nn/residual_norm.h"

#include <ATen/ops/zeros_like.h>

#include "braid/nn/kept.h"
#include "braid/nn/linear.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct FusedCall {
  NormCall norm;
  bool has_branch;
  const param::Parameter* branch_bias;
};

at::Tensor data_of(const param::Parameter* param) { return param ? param->data.detach() : at::Tensor(); }

kernels::NormParams params_of(const NormCall& call) {
  return {call.kind, data_of(call.weight), data_of(call.bias), call.eps, call.offset};
}

at::Tensor contiguous(const at::Tensor& x) { return x.defined() ? x.contiguous() : x; }

// A norm with an optional branch. Without a branch, the first output is the first input.
struct JoinNorm : Function<JoinNorm> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& residual,
                               const std::optional<at::Tensor>& branch, const std::optional<at::Tensor>& /*trained*/,
                               const FusedCall& call) {
    keep(ctx, call);
    ctx->set_materialize_grads(false);
    const kernels::Addends addends{residual.contiguous(), branch ? branch->contiguous() : at::Tensor(),
                                   data_of(call.branch_bias)};
    kernels::Normed normed = kernels::norm_forward(addends, params_of(call.norm));
    if (!branch) normed.sum = residual;
    ctx->save_for_backward({normed.sum, call.norm.weight->data, normed.mean, normed.rstd});
    return {normed.sum, normed.y};
  }

  // The kernel computes dX and the norm's weight gradients in one pass, and the queue only receives the sums. Deferring
  // these small vectors would keep x and dY alive and read them again. The gradient of the branch's bias is deferred:
  // it is the sum of dX, which is the branch's dY, and the branch's last product keeps that anyway. join() uses the
  // same operation, so a cut between the branches does not change the bits.
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const auto& [call, has_branch, branch_bias] = kept<FusedCall>(ctx);
    const variable_list saved = ctx->get_saved_variables();
    const kernels::Normed normed{saved[0].contiguous(), {}, saved[2], saved[3]};
    const at::Tensor dy = grads[1].defined() ? grads[1].contiguous() : at::zeros_like(normed.sum);
    const kernels::NormGradients d =
        kernels::norm_backward({contiguous(grads[0]), dy, call.token_parts}, normed, params_of(call));
    push_value({call.queue, {call.weight, 0}, call.micro}, d.dweight);
    if (call.bias) push_value({call.queue, {call.bias, 0}, call.micro}, d.dbias);
    if (branch_bias) push_token_sum({call.queue, {branch_bias, 0}, call.micro}, d.dx);
    return {d.dx, has_branch ? d.dx : at::Tensor(), {}, {}};
  }
};

struct JoinOnly : Function<JoinOnly> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& residual, const at::Tensor& branch,
                            const std::optional<at::Tensor>& /*trained*/, const GradTarget& bias) {
    keep(ctx, bias);
    return kernels::sum_of({residual.contiguous(), branch.contiguous(), data_of(bias.param.param)});
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const GradTarget& bias = kept<GradTarget>(ctx);
    if (bias.param.param) push_token_sum(bias, grads[0]);
    return {grads[0], grads[0], {}, {}};
  }
};

Residual apply(const at::Tensor& residual, const std::optional<at::Tensor>& branch, const FusedCall& call) {
  const auto trained = any_trained({call.norm.weight, call.norm.bias, call.branch_bias});
  variable_list out = JoinNorm::apply(residual, branch, trained, call);
  if (call.norm.keep == Keep::Everything) return {std::move(out[0]), std::move(out[1])};
  const auto again = [sum = SavedTensor(out[0]), params = params_of(call.norm)] {
    return kernels::norm_forward({sum.tensor().contiguous(), {}, {}}, params).y;
  };
  return {std::move(out[0]), {std::move(out[1]), again}};
}

}  // namespace

Residual norm_residual(const at::Tensor& x_btc, const NormCall& call) {
  return apply(x_btc, {}, {call, false, nullptr});
}

Residual join_and_norm(const at::Tensor& residual_btc, const Branch& branch, const NormCall& call) {
  return apply(residual_btc, branch.btc, {call, true, branch.bias});
}

at::Tensor join(const at::Tensor& residual_btc, const Branch& branch, const RankContext& rank,
                const Microbatch& microbatch) {
  const GradTarget bias{&rank.weight_grads, {branch.bias, 0}, microbatch.micro};
  return JoinOnly::apply(residual_btc, branch.btc, any_trained({branch.bias}), bias);
}

Branch dropped(const Branch& branch, const Dropout& dropout, const RankContext& rank, const Microbatch& microbatch) {
  if (!dropout.active(microbatch)) return branch;
  const GradTarget bias{&rank.weight_grads, {branch.bias, 0}, microbatch.micro};
  return {dropout.forward(branch.bias ? add_bias_(branch.btc, bias) : branch.btc, microbatch), nullptr};
}

}  // namespace braid::nn
