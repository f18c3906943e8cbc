// Two passes over the logits, each over chunks of rows that fit a core's cache:
//
//   forward    m = max, e = exp(x - m), s = sum e      m is the rank's own max: the group's comes as a factor later,
//   backward   dx = e * (f / s) * g / n - onehot * g/n   f = exp(m - group's m), s summed over the group
#include "braid/nn/cross_entropy.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <limits>

#include "braid/base/errors.h"
#include "braid/nn/kept.h"
#include "braid/nn/regions.h"

namespace braid {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr int64_t kChunkElements = int64_t{1} << 17;
constexpr int64_t kColumns[] = {1};

struct LossCall {
  at::Tensor targets_bt;
  VocabRange range;
  Communicator* group;
};

// What backward needs of n rows.
struct LossState {
  at::Tensor exp_btv;    // exp(x - own max), 0 in the padding
  at::Tensor scale_n;    // exp_btv * scale_n is the softmax
  at::Tensor target_n1;  // column of the target here; 0 where it is another rank's
  at::Tensor ours_n;     // 1 where the target's column is here, else 0
};

// Exponentiates x_nv in place, chunk by chunk; returns the rows' own max and sum. Without real columns: -inf and 0.
std::pair<at::Tensor, at::Tensor> exponentiate_(const at::Tensor& x_nv, int64_t real) {
  const int64_t n = x_nv.size(0), v = x_nv.size(1);
  at::Tensor max_n = at::full({n}, -std::numeric_limits<double>::infinity(), x_nv.options());
  at::Tensor sum_n = at::full({n}, 0, x_nv.options());
  if (real < v) x_nv.narrow(1, real, v - real).zero_();
  if (real == 0) return {max_n, sum_n};
  const int64_t step = std::max<int64_t>(1, kChunkElements / v);
  for (int64_t begin = 0; begin < n; begin += step) {
    const int64_t count = std::min(step, n - begin);
    at::Tensor x = x_nv.narrow(0, begin, count).narrow(1, 0, real);
    at::Tensor max = max_n.narrow(0, begin, count), sum = sum_n.narrow(0, begin, count);
    at::amax_out(max, x, at::IntArrayRef(kColumns));
    x.sub_(max.unsqueeze(1)).exp_();
    at::sum_out(sum, x, at::IntArrayRef(kColumns));
  }
  return {max_n, sum_n};
}

struct CrossEntropy : Function<CrossEntropy> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits_btv, const LossCall& call) {
    const at::Tensor x_btv = logits_btv.detach();
    const at::Tensor x_nv = x_btv.view({-1, x_btv.size(-1)});
    const at::Tensor local_n = call.targets_bt.reshape({-1}).sub(call.range.first);
    const at::Tensor ours = local_n.ge(0).logical_and_(local_n.lt(call.range.real));
    LossState state{x_btv, {}, local_n.masked_fill(ours.logical_not(), 0).unsqueeze(1), ours.to(x_nv.scalar_type())};

    // Before the exponentials overwrite it.
    const at::Tensor target_n = x_nv.gather(1, state.target_n1).squeeze(1).masked_fill_(ours.logical_not(), 0);
    auto [own_max_n, own_sum_n] = exponentiate_(x_nv, call.range.real);
    const at::Tensor max_n = own_max_n.clone();
    all_reduce_(max_n, ReduceOp::Max, *call.group);
    const at::Tensor factor_n = own_max_n.sub_(max_n).exp_();
    const at::Tensor sums_2n = at::empty({2, x_nv.size(0)}, x_nv.options());
    sums_2n[0].copy_(own_sum_n.mul_(factor_n));
    sums_2n[1].copy_(target_n);
    all_reduce_(sums_2n, ReduceOp::Sum, *call.group);

    state.scale_n = factor_n.div(sums_2n[0]);
    keep(ctx, std::move(state));
    return sums_2n[0].log().add_(max_n).sub_(sums_2n[1]).mean();
  }

  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    LossState state = std::move(kept<LossState>(ctx));
    check(state.exp_btv.defined(), "backward of a cross-entropy runs once: it overwrites what it saved");
    const at::Tensor dx_nv = state.exp_btv.view({-1, state.exp_btv.size(-1)});
    const at::Tensor step = grads[0].div(dx_nv.size(0));  // of one row
    dx_nv.mul_(state.scale_n.mul_(step).unsqueeze(1));
    dx_nv.scatter_add_(1, state.target_n1, state.ours_n.mul_(step).neg_().unsqueeze(1));
    return {state.exp_btv, {}};
  }
};

}  // namespace

VocabRange vocab_range(int64_t vocab, int64_t local_extent, const Communicator& group) {
  const int64_t first = group.rank() * local_extent;
  return {vocab, first, std::clamp<int64_t>(vocab - first, 0, local_extent)};
}

at::Tensor parallel_cross_entropy_(const at::Tensor& logits_btv, const at::Tensor& targets_bt, const VocabRange& range,
                                   Communicator& group) {
  check(logits_btv.is_contiguous(), "the logits are contiguous, for they are worked on in place");
  if (targets_bt.is_cpu() && targets_bt.numel() > 0) {
    check(targets_bt.min().item<int64_t>() >= 0 && targets_bt.max().item<int64_t>() < range.vocab,
          "targets are entries of the vocabulary");
  }
  return CrossEntropy::apply(logits_btv, LossCall{targets_bt, range, &group});
}

}  // namespace braid
