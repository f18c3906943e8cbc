// The head: a product without bias, and a loss that writes its gradient into the buffer of the logits.
#include "braid/nn/language_head.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

#include "braid/base/errors.h"
#include "braid/nn/kept.h"
#include "braid/nn/kernels/product.h"
#include "braid/nn/kernels/row_sum.h"
#include "braid/nn/key_value_cache.h"
#include "braid/nn/linear.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct HeadCall {
  GradTarget weight;
  GradTarget bias;  // without a parameter: none
  at::Tensor targets_n;
  at::Tensor ignored_n;  // bool, true for rows without a target; undefined if all have one
  double num_targets;    // by which the sum of losses is divided
  VocabRange range;
  Communicator* group;
  int64_t chunk_rows;
  double seed;     // the gradient of the loss, with which backward will be seeded
  bool gradients;  // whether a backward may follow
  bool dx;         // whether that backward needs dX
  double cap;      // of the logits; 0: none
  at::ScalarType dx_type;
  bool sums_gradient;  // x's gradient is summed over tensor ranks

  const param::WeightGradQueue& queue() const { return *weight.queue; }
  int parts() const { return queue().parts().of_rank; }
  // The vocabulary's columns, over which dX is summed.
  kernels::InnerParts columns() const { return {std::max(1, parts())}; }
  bool whole() const { return chunk_rows >= targets_n.size(0); }
  bool is_trained() const { return weight.param.param->is_trained(); }
  // The bias if it is trained; else null.
  const param::Parameter* trained_bias() const { return any_trained({bias.param.param}) ? bias.param.param : nullptr; }
};

at::Tensor logits_of(const at::Tensor& x_nc, const at::Tensor& weight_vc, const HeadCall& call) {
  at::Tensor logits_nv = at::empty({x_nc.size(0), weight_vc.size(0)}, x_nc.options());
  multiply(logits_nv, x_nc, weight_vc.t(), call.queue(), {});
  if (call.bias.param.param) logits_nv.add_(call.bias.param.param->data.detach());
  return logits_nv;
}

void set_ignored_(const at::Tensor& rows, const at::Tensor& ignored_n) {
  if (ignored_n.defined()) rows.masked_fill_(rows.dim() == 1 ? ignored_n : ignored_n.unsqueeze(1), 0);
}

at::Tensor loss_of(const at::Tensor& loss_n, const HeadCall& call) {
  if (call.num_targets == static_cast<double>(loss_n.size(0))) return mean_loss(loss_n);
  return loss_n.sum(at::kDouble).div(call.num_targets).to(loss_n.scalar_type());
}

// Returns the number of rows of a chunk. Chunks have even sizes and at least one row, and are as few as the limit on
// the bytes of each allows.
int64_t chunk_rows(int64_t rows, int64_t row_bytes, int64_t limit) {
  const int64_t most = std::max<int64_t>(1, limit / std::max<int64_t>(1, row_bytes));
  const int64_t chunks = std::max<int64_t>(1, (rows + most - 1) / most);
  return std::max<int64_t>(1, (rows + chunks - 1) / chunks);
}

struct WholeState {
  HeadCall call;
  std::vector<int64_t> x_sizes;
  at::Tensor logits_nv;  // undefined once backward has run
  kernels::SoftmaxGradient gradient;
};

struct WholeLoss : Function<WholeLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btc, const std::optional<at::Tensor>& /*trained*/,
                            const HeadCall& call) {
    const at::Tensor& weight_vc = call.weight.param.param->data;
    // Detached, because the queue holds it and would keep its graph alive.
    const at::Tensor x_nc = x_btc.detach().to(weight_vc.scalar_type()).reshape({-1, x_btc.size(-1)});
    const at::Tensor logits_nv = logits_of(x_nc, weight_vc, call);
    LossRows rows = cross_entropy_rows({logits_nv, call.cap}, call.targets_n, call.range, *call.group, call.parts());
    set_ignored_(rows.loss_n, call.ignored_n);
    if (call.gradients) {
      ctx->save_for_backward({call.is_trained() ? x_nc : at::Tensor(), weight_vc});
      keep(ctx, WholeState{call, x_btc.sizes().vec(), logits_nv, std::move(rows.gradient)});
    }
    return loss_of(rows.loss_n, call);
  }

  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    WholeState& state = kept<WholeState>(ctx);
    check(state.logits_nv.defined(), "backward of a head's loss runs once: it overwrites what it saved");
    const at::Tensor dlogits_nv = std::move(state.logits_nv);
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x_nc = saved[0], &weight_vc = saved[1];
    state.gradient.step = grads[0].div(state.call.num_targets);
    kernels::softmax_gradient_(dlogits_nv, state.gradient);
    set_ignored_(dlogits_nv, state.call.ignored_n);
    at::Tensor dx_btc;
    if (state.call.dx) {
      if (state.call.sums_gradient) state.call.weight.queue->defer();
      dx_btc = at::empty(state.x_sizes, dlogits_nv.options().dtype(state.call.dx_type));
      multiply(dx_btc.view({-1, dx_btc.size(-1)}), dlogits_nv, weight_vc, state.call.queue(), state.call.columns());
    }
    push_product(state.call.weight, dlogits_nv, x_nc);
    if (state.call.trained_bias()) push_row_sum(state.call.bias, dlogits_nv);
    return {dx_btc, {}, {}};
  }
};

// Computes the loss chunk by chunk. With call.gradients it also computes the gradients: dX into `dx_nc` if call.dx is
// true, and dW into the slot if there is one.
class Chunks {
 public:
  Chunks(const HeadCall& call, const at::Tensor& x_nc, const at::Tensor& weight_vc)
      : call_(call), x_nc_(x_nc), weight_vc_(weight_vc) {}

  at::Tensor loss_n, dx_nc, dbias_v;

  void run(const param::GradSlot* slot) {
    const int64_t n = x_nc_.size(0);
    if (call_.gradients && call_.dx) dx_nc = at::empty(x_nc_.sizes(), x_nc_.options().dtype(call_.dx_type));
    for (int64_t begin = 0; begin < n; begin += call_.chunk_rows) {
      const int64_t count = std::min(call_.chunk_rows, n - begin);
      const at::Tensor x = x_nc_.narrow(0, begin, count);
      const at::Tensor logits_nv = logits_of(x, weight_vc_, call_);
      const at::Tensor targets_n = call_.targets_n.narrow(0, begin, count);
      LossRows rows = cross_entropy_rows({logits_nv, call_.cap}, targets_n, call_.range, *call_.group, call_.parts());
      const at::Tensor ignored_n = call_.ignored_n.defined() ? call_.ignored_n.narrow(0, begin, count) : at::Tensor();
      set_ignored_(rows.loss_n, ignored_n);
      if (begin == 0) loss_n = at::empty({n}, rows.loss_n.options());
      loss_n.narrow(0, begin, count).copy_(rows.loss_n);
      if (!call_.gradients) continue;
      rows.gradient.step = at::full({}, call_.seed / call_.num_targets, loss_n.options());
      kernels::softmax_gradient_(logits_nv, rows.gradient);
      set_ignored_(logits_nv, ignored_n);
      if (call_.trained_bias()) add_bias_gradient(logits_nv);
      if (dx_nc.defined()) {
        multiply(dx_nc.narrow(0, begin, count), logits_nv, weight_vc_, call_.queue(), call_.columns());
      }
      if (slot) accumulate(*slot, logits_nv, x, begin == 0 ? slot->beta : 1);
    }
  }

 private:
  void accumulate(const param::GradSlot& slot, const at::Tensor& dlogits_nv, const at::Tensor& x_nc, double beta) {
    const auto product = call_.parts() > 0 ? kernels::accumulate_product_in_order : kernels::accumulate_product;
    product(slot.target, dlogits_nv, x_nc, beta);
  }

  void add_bias_gradient(const at::Tensor& dlogits_nv) {
    const bool first = !dbias_v.defined();
    if (first) dbias_v = at::empty({dlogits_nv.size(1)}, loss_n.options());
    kernels::accumulate_row_sum(dbias_v, dlogits_nv, first ? 0 : 1);
  }

  const HeadCall& call_;
  const at::Tensor &x_nc_, &weight_vc_;
};

struct ChunkedState {
  at::Tensor dx_btc;  // undefined when it is not needed
  double seed;
  GradTarget bias;
  at::Tensor dbias_v;
};

struct ChunkedLoss : Function<ChunkedLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btc, const std::optional<at::Tensor>& /*trained*/,
                            const HeadCall& call) {
    const at::Tensor x_nc = x_btc.to(call.weight.param.param->data.scalar_type()).reshape({-1, x_btc.size(-1)});
    Chunks chunks(call, x_nc, call.weight.param.param->data);
    if (call.gradients && call.is_trained()) {
      const auto& [param, use] = call.weight.param;
      call.weight.queue->run_now(*param, use, call.weight.micro,
                                 [&](const param::GradSlot& slot) { chunks.run(&slot); });
    } else {
      chunks.run(nullptr);
    }
    if (call.gradients) {
      keep(ctx, ChunkedState{chunks.dx_nc.defined() ? chunks.dx_nc.view(x_btc.sizes()) : at::Tensor(), call.seed,
                             call.bias, chunks.dbias_v});
    }
    return loss_of(chunks.loss_n, call);
  }

  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    ChunkedState& state = kept<ChunkedState>(ctx);
    if (grads[0].is_cpu()) {
      const at::Tensor announced = at::full({}, state.seed, grads[0].options());
      check(grads[0].equal(announced), "the loss is seeded with the gradient that its forward was told");
    }
    if (state.dbias_v.defined()) push_value(state.bias, std::move(state.dbias_v));
    return {std::move(state.dx_btc), {}, {}};
  }
};

// Returns the last `count` tokens of each sequence, or x itself if it has no others.
at::Tensor last_of(const at::Tensor& x_btc, int64_t count) {
  const int64_t t = x_btc.size(1);
  return count == t ? x_btc : x_btc.narrow(1, t - count, count);
}

}  // namespace

at::Tensor LanguageHead::logits(const at::Tensor& all_btc, const Microbatch& microbatch) const {
  const at::Tensor x_btc =
      microbatch.cache ? at::index_select(all_btc.flatten(0, 1), 0, microbatch.cache->last_s()).unsqueeze(1) : all_btc;
  const LinearCall call{options_.weight, options_.bias, &rank_.weight_grads, microbatch.micro,
                        rows_of(x_btc, microbatch)};
  at::Tensor logits_btv = linear(x_btc, call);
  if (options_.cap > 0) logits_btv = logits_btv.div(options_.cap).tanh_().mul_(options_.cap);
  const int64_t padding = logits_btv.size(-1) - range_.real;
  logits_btv.narrow(-1, range_.real, padding).fill_(-std::numeric_limits<double>::infinity());
  return logits_btv;
}

at::Tensor LanguageHead::forward(const at::Tensor& x_btc, const Microbatch& microbatch) const {
  if (!microbatch.targets_bt.defined()) return logits(x_btc, microbatch);
  const at::Tensor x = last_of(x_btc, microbatch.targets_bt.size(-1));
  const at::Tensor& weight_vc = options_.weight.param->data;
  const auto trained = any_trained({options_.weight.param, options_.bias});
  const bool gradients = c10::GradMode::is_enabled() && (trained || x.requires_grad());
  const at::Tensor ignored_n = microbatch.rows_bj.defined() ? microbatch.targets_bt.lt(0).view({-1}) : at::Tensor();
  const at::Tensor targets_n =
      ignored_n.defined() ? microbatch.targets_bt.reshape({-1}) : checked_targets(microbatch.targets_bt, range_);
  // Where sums have parts, the limit is that of all ranks' columns, so that their number does not change the chunks.
  const int64_t columns = weight_vc.size(0) * (rank_.weight_grads.parts() ? rank_.tensor.size() : 1);
  const int64_t rows = chunk_rows(targets_n.size(0), columns * weight_vc.element_size(), options_.logit_bytes);
  const HeadCall call{{&rank_.weight_grads, options_.weight, microbatch.micro},
                      {&rank_.weight_grads, {options_.bias, 0}, microbatch.micro},
                      targets_n,
                      ignored_n,
                      microbatch.num_targets > 0 ? microbatch.num_targets : static_cast<double>(targets_n.size(0)),
                      range_,
                      &rank_.tensor,
                      rows,
                      microbatch.loss_gradient,
                      gradients,
                      gradients && x.requires_grad(),
                      options_.cap,
                      x.scalar_type(),
                      options_.sums_gradient};
  return call.whole() ? WholeLoss::apply(x, trained, call) : ChunkedLoss::apply(x, trained, call);
}

}  // namespace braid::nn
