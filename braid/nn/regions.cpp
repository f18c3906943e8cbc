// The regions as custom autograd Functions.
#include "braid/nn/regions.h"

#include "braid/base/errors.h"
#include "braid/nn/kept.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Returns the gradient all-reduced over the group. Autograd may pass a gradient that is expanded, or that others read
// too: the two inputs of a sum share one. So it is reduced in place only if nothing else holds it.
at::Tensor summed(at::Tensor&& gradient, Communicator& group) {
  const bool ours = gradient.use_count() == 1 && gradient.storage().use_count() == 1 && gradient.is_contiguous();
  at::Tensor sum = ours ? std::move(gradient) : gradient.clone(at::MemoryFormat::Contiguous);
  all_reduce_(sum, ReduceOp::Sum, group);
  return sum;
}

struct CopyTo : Function<CopyTo> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, Communicator* group, at::ScalarType sums) {
    keep(ctx, CopyRegion{{group}, x.scalar_type()});
    return x.to(sums);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const auto& [region, type] = kept<CopyRegion>(ctx);
    const comm::CallName calls(region.name);
    return {summed(std::move(grads[0]), *region.group).to(type), {}, {}};
  }
};

struct ReduceFrom : Function<ReduceFrom> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, Communicator* group) {
    ctx->mark_dirty({x});
    all_reduce_(x, ReduceOp::Sum, *group);
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list& grads) { return {std::move(grads[0]), {}}; }
};

}  // namespace

void all_reduce_(const at::Tensor& x, ReduceOp op, Communicator& group) {
  check(x.is_contiguous(), "an all-reduce in place needs a contiguous tensor");
  group.all_reduce(x, op).order_before(group.queue());
}

at::Tensor copy_to(const at::Tensor& x, Communicator& group, at::ScalarType sums) {
  return group.size() == 1 ? x : CopyTo::apply(x, &group, sums);
}
at::Tensor reduce_from_(const at::Tensor& x, Communicator& group) {
  return group.size() == 1 ? x : ReduceFrom::apply(x, &group);
}

}  // namespace braid::nn
