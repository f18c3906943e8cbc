// The regions as custom autograd Functions. Ranks exchange the parts of all sequences, one rank's after the other's, so
// with several sequences tokens are copied into or out of that order.
#include "braid/nn/token_regions.h"

#include <ATen/ops/empty.h>

#include "braid/base/errors.h"
#include "braid/nn/kept.h"
#include "braid/nn/regions.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

at::Tensor gathered(const at::Tensor& part_btc, Communicator& group) {
  const int64_t b = part_btc.size(0), t = part_btc.size(1), c = part_btc.size(2), ranks = group.size();
  const at::Tensor parts_rbtc = at::empty({ranks, b, t, c}, part_btc.options().requires_grad(false));
  group.all_gather(parts_rbtc, part_btc.detach().contiguous()).order_before(group.queue());
  // detach() makes it a base tensor instead of a view, so that later operations may work in place.
  return parts_rbtc.transpose(0, 1).reshape({b, ranks * t, c}).detach();
}

at::Tensor parts_of(const at::Tensor& x_btc, const Communicator& group) {
  const int64_t t = x_btc.size(1), ranks = group.size();
  check(t % ranks == 0, "the tokens of a sequence divide evenly over the group");
  return x_btc.detach().reshape({x_btc.size(0), ranks, t / ranks, x_btc.size(2)}).transpose(0, 1);
}

at::Tensor scattered(const at::Tensor& x_btc, Communicator& group) {
  const at::Tensor parts_rbtc = parts_of(x_btc, group).contiguous();
  at::Tensor sum_btc = at::empty(parts_rbtc.sizes().slice(1), parts_rbtc.options());
  group.reduce_scatter(sum_btc, parts_rbtc, ReduceOp::Sum).order_before(group.queue());
  return sum_btc;
}

struct GatherTokens : Function<GatherTokens> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btc, Communicator* group, at::ScalarType sums) {
    keep(ctx, CopyRegion{{group}, x_btc.scalar_type()});
    return gathered(x_btc, *group).to(sums);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const auto& [region, type] = kept<CopyRegion>(ctx);
    const comm::CallName calls(region.name);
    return {scattered(std::move(grads[0]), *region.group).to(type), {}, {}};
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
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btc, Communicator* group) {
    keep(ctx, Region{group});
    return scattered(x_btc, *group);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const auto& [group, name] = kept<Region>(ctx);
    const comm::CallName calls(name);
    return {gathered(std::move(grads[0]), *group), {}};
  }
};

}  // namespace

Activation gather_tokens(const Activation& x_btc, Communicator& group, at::ScalarType sums) {
  const auto again = [part = x_btc.again ? at::Tensor() : x_btc.value.detach(), part_again = x_btc.again,
                      region = Region{&group}] {
    const comm::CallName calls(region.name);
    return gathered(part_again ? part_again() : part, *region.group);
  };
  return {GatherTokens::apply(x_btc.value, &group, sums), again};
}

at::Tensor all_tokens(const at::Tensor& x_btc, Communicator& group) { return AllTokens::apply(x_btc, &group); }

at::Tensor scatter_sum(const at::Tensor& x_btc, Communicator& group) { return ScatterSum::apply(x_btc, &group); }

}  // namespace braid::nn
