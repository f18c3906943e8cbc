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
at::Tensor summed(at::Tensor&& gradient, const CopyRegion& copy) {
  const bool ours = gradient.use_count() == 1 && gradient.storage().use_count() == 1 && gradient.is_contiguous();
  at::Tensor sum = ours ? std::move(gradient) : gradient.clone(at::MemoryFormat::Contiguous);
  finish_sum(copy.region.group->all_reduce(sum, ReduceOp::Sum), copy);
  return sum;
}

struct CopyTo : Function<CopyTo> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const CopyRegion& copy, at::ScalarType sums) {
    keep(ctx, copy);
    return x.to(sums);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const CopyRegion& copy = kept<CopyRegion>(ctx);
    const comm::CallName calls(copy.region.name);
    return {summed(std::move(grads[0]), copy).to(copy.type), {}, {}};
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

// The weight gradients make calls too, which have names of their own.
void finish_sum(Work sum, const CopyRegion& copy) {
  if (copy.weight_grads) {
    const comm::CallName calls{comm::OpName()};
    copy.weight_grads->run_deferred();
  }
  sum.order_before(copy.region.group->queue());
}

void all_reduce_(const at::Tensor& x, ReduceOp op, Communicator& group) {
  check(x.is_contiguous(), "an all-reduce in place needs a contiguous tensor");
  group.all_reduce(x, op).order_before(group.queue());
}

at::Tensor copy_to(const at::Tensor& x, Communicator& group, at::ScalarType sums,
                   param::WeightGradQueue* weight_grads) {
  return group.size() == 1 ? x : CopyTo::apply(x, CopyRegion{{&group}, x.scalar_type(), weight_grads}, sums);
}
at::Tensor reduce_from_(const at::Tensor& x, Communicator& group) {
  return group.size() == 1 ? x : ReduceFrom::apply(x, &group);
}

}  // namespace braid::nn
