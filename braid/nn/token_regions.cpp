// The regions as custom autograd Functions. Ranks exchange the parts of all sequences, one rank's after the other's, so
// with several sequences tokens are copied into or out of that order.
#include "braid/nn/token_regions.h"

#include <ATen/ops/empty.h>

#include <memory>
#include <utility>

#include "braid/base/errors.h"
#include "braid/nn/kept.h"
#include "braid/nn/regions.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// An all-gather of tokens in flight.
class TokenGather {
 public:
  TokenGather(const at::Tensor& part_btc, Communicator& group)
      : group_(group),
        parts_rbtc_(at::empty({group.size(), part_btc.size(0), part_btc.size(1), part_btc.size(2)},
                              part_btc.options().requires_grad(false))),
        work_(group.all_gather(parts_rbtc_, part_btc.detach().contiguous())) {}

  // Called once.
  at::Tensor finish() {
    work_.order_before(group_.queue());
    const int64_t b = parts_rbtc_.size(1), t = parts_rbtc_.size(2), c = parts_rbtc_.size(3);
    // detach() makes it a base tensor instead of a view, so that later operations may work in place.
    return std::exchange(parts_rbtc_, {}).transpose(0, 1).reshape({b, group_.size() * t, c}).detach();
  }

 private:
  Communicator& group_;
  at::Tensor parts_rbtc_;
  Work work_;
};

at::Tensor gathered(const at::Tensor& part_btc, Communicator& group) { return TokenGather(part_btc, group).finish(); }

at::Tensor parts_of(const at::Tensor& x_btc, const Communicator& group) {
  const int64_t t = x_btc.size(1), ranks = group.size();
  check(t % ranks == 0, "the tokens of a sequence divide evenly over the group");
  return x_btc.detach().reshape({x_btc.size(0), ranks, t / ranks, x_btc.size(2)}).transpose(0, 1);
}

at::Tensor scattered(const at::Tensor& x_btc, const CopyRegion& copy) {
  Communicator& group = *copy.region.group;
  const at::Tensor parts_rbtc = parts_of(x_btc, group).contiguous();
  at::Tensor sum_btc = at::empty(parts_rbtc.sizes().slice(1), parts_rbtc.options());
  finish_sum(group.reduce_scatter(sum_btc, parts_rbtc, ReduceOp::Sum), copy);
  return sum_btc;
}

struct GatherTokens : Function<GatherTokens> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btc, const CopyRegion& copy,
                            at::ScalarType sums) {
    keep(ctx, copy);
    return gathered(x_btc, *copy.region.group).to(sums);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const CopyRegion& copy = kept<CopyRegion>(ctx);
    const comm::CallName calls(copy.region.name);
    return {scattered(grads[0], copy).to(copy.type), {}, {}};
  }
};

struct AllTokens : Function<AllTokens> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btc, Communicator* group) {
    keep(ctx, Region{group});
    return gathered(x_btc, *group);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const Communicator& group = *kept<Region>(ctx).group;
    return {parts_of(grads[0], group).select(0, group.rank()).contiguous(), {}};
  }
};

struct ScatterSum : Function<ScatterSum> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btc, Communicator* group, at::ScalarType type) {
    keep(ctx, Region{group});
    return scattered(x_btc, {{group}, x_btc.scalar_type(), nullptr}).to(type);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const auto& [group, name] = kept<Region>(ctx);
    const comm::CallName calls(name);
    return {gathered(std::move(grads[0]), *group), {}, {}};
  }
};

}  // namespace

Activation gather_tokens(const Activation& x_btc, Communicator& group, at::ScalarType sums,
                         param::WeightGradQueue* weight_grads) {
  const CopyRegion copy{{&group}, x_btc.value.scalar_type(), weight_grads};
  const auto start_again = [part = SavedTensor(x_btc.again ? at::Tensor() : x_btc.value), part_again = x_btc.again,
                            region = copy.region] {
    const comm::CallName calls(region.name);
    const auto gather = std::make_shared<TokenGather>(part_again ? part_again() : part.tensor(), *region.group);
    return [gather] { return gather->finish(); };
  };
  Activation tokens(GatherTokens::apply(x_btc.value, copy, sums), [start_again] { return start_again()(); });
  tokens.start_again = start_again;
  return tokens;
}

at::Tensor all_tokens(const at::Tensor& x_btc, Communicator& group) { return AllTokens::apply(x_btc, &group); }

at::Tensor scatter_sum(const at::Tensor& x_btc, Communicator& group, at::ScalarType type) {
  return ScatterSum::apply(x_btc, &group, type);
}

}  // namespace braid::nn
