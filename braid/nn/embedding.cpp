// The embeddings of tokens and positions. Forward gathers rows of the token table; the weight-gradient queue scatters
// the gradients into its rows.
#include "braid/nn/embedding.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include "braid/base/errors.h"
#include "braid/nn/kept.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// The tokens as rows of this rank's part of the table.
struct LocalRows {
  at::Tensor rows_n;     // row of each token; 0 if the token is on another rank
  at::Tensor foreign_n;  // bool, true if the token is on another rank; undefined if all are on this rank
  GradTarget target;
  double scale;  // factor of rows; 0: none
};

LocalRows local_rows(const at::Tensor& tokens_bt, int64_t num_rows, const Communicator& group) {
  const at::Tensor tokens_n = tokens_bt.reshape({-1});
  if (tokens_n.is_cpu() && tokens_n.numel() > 0) {
    check(tokens_n.min().item<int64_t>() >= 0 && tokens_n.max().item<int64_t>() < num_rows * group.size(),
          "tokens are within the vocabulary");
  }
  if (group.size() == 1) return {tokens_n, {}, {}, 0};
  const at::Tensor local_n = tokens_n.sub(group.rank() * num_rows);
  at::Tensor foreign_n = local_n.lt(0).logical_or_(local_n.ge(num_rows));
  return {local_n.masked_fill(foreign_n, 0), std::move(foreign_n), {}, 0};
}

struct Embedding : Function<Embedding> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& weight, const at::Tensor& tokens_bt,
                            const LocalRows& local) {
    keep(ctx, local);
    at::Tensor x_nc = weight.index_select(0, local.rows_n);
    if (local.foreign_n.defined()) x_nc.masked_fill_(local.foreign_n.unsqueeze(1), 0);
    if (local.scale != 0) x_nc.mul_(local.scale);
    if (local.target.queue->parts()) x_nc.add_(0);  // makes +0 of -0, as the sum over tensor ranks does
    // detach() makes it a base tensor instead of a view, so that later operations may work in place.
    return x_nc.view({tokens_bt.size(0), tokens_bt.size(1), weight.size(1)}).detach();
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const LocalRows& local = kept<LocalRows>(ctx);
    at::Tensor dx_nc = grads[0].reshape({-1, grads[0].size(-1)});
    if (local.foreign_n.defined()) dx_nc = dx_nc.masked_fill(local.foreign_n.unsqueeze(1), 0);
    if (local.scale != 0) dx_nc = dx_nc.mul(local.scale);
    push_scattered_rows(local.target, dx_nc, local.rows_n);
    return {{}, {}, {}};
  }
};

struct UsedPositions {
  GradTarget target;
  int64_t begin;
};

struct AddPositions : Function<AddPositions> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btc, const at::Tensor& weight,
                            const UsedPositions& used) {
    keep(ctx, used);
    check(used.begin + x_btc.size(1) <= weight.size(0), "a sequence is no longer than the table of positions");
    ctx->mark_dirty({x_btc});
    return x_btc.add_(weight.narrow(0, used.begin, x_btc.size(1)));
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const auto& [target, begin] = kept<UsedPositions>(ctx);
    push_row_sum(target, grads[0].reshape({grads[0].size(0), -1}), begin * grads[0].size(-1));
    return {std::move(grads[0]), {}, {}};
  }
};

struct AddFirstType : Function<AddFirstType> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btc, const at::Tensor& weight,
                            const GradTarget& target) {
    keep(ctx, target);
    ctx->mark_dirty({x_btc});
    return x_btc.add_(weight.select(0, 0));
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    push_token_sum(kept<GradTarget>(ctx), grads[0]);
    return {std::move(grads[0]), {}, {}};
  }
};

struct PickedRows {
  at::Tensor rows_n;  // of all sequences' tokens
  std::vector<int64_t> sizes;
};

struct PickRows : Function<PickRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btc, const PickedRows& picked) {
    keep(ctx, picked);
    return x_btc.flatten(0, 1).index_select(0, picked.rows_n).view({x_btc.size(0), -1, x_btc.size(2)}).detach();
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const PickedRows& picked = kept<PickedRows>(ctx);
    const at::Tensor dx_btc = at::zeros(picked.sizes, grads[0].options());
    dx_btc.flatten(0, 1).index_add_(0, picked.rows_n, grads[0].flatten(0, 1));
    return {dx_btc, {}};
  }
};

}  // namespace

at::Tensor add_first_type_(const at::Tensor& x_btc, const GradTarget& weight) {
  return AddFirstType::apply(x_btc, weight.param.param->data, weight);
}

at::Tensor pick_rows(const at::Tensor& x_btc, const at::Tensor& rows_bj) {
  if (!rows_bj.defined()) return x_btc;
  const int64_t b = x_btc.size(0), t = x_btc.size(1);
  check(rows_bj.dim() == 2 && rows_bj.size(0) == b, "every sequence has places of its own");
  const at::Tensor begin_b1 = at::arange(0, b * t, t, rows_bj.options()).unsqueeze(1);
  return PickRows::apply(x_btc, PickedRows{rows_bj.add(begin_b1).view({-1}), x_btc.sizes().vec()});
}

at::Tensor lookup(ParamUse weight, double scale, const RankContext& rank, const Microbatch& microbatch) {
  const at::Tensor& weight_vc = weight.param->data;
  LocalRows local = local_rows(microbatch.tokens_bt, weight_vc.size(0), rank.tensor);
  local.target = {&rank.weight_grads, weight, microbatch.micro};
  local.scale = at::scalar_tensor(scale, weight_vc.scalar_type()).item<double>();
  return Embedding::apply(weight_vc, microbatch.tokens_bt, local);
}

at::Tensor add_positions_(const at::Tensor& x_btc, const GradTarget& weight, int64_t begin) {
  return AddPositions::apply(x_btc, weight.param.param->data, UsedPositions{weight, begin});
}

at::Tensor add_positions_at_(const at::Tensor& x_btc, const at::Tensor& weight_tc, const at::Tensor& places_n) {
  return x_btc.add_(weight_tc.index_select(0, places_n).view(x_btc.sizes()));
}

}  // namespace braid::nn
