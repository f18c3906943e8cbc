// Linear between conjugate regions.
#include "braid/nn/parallel_linear.h"

#include "braid/nn/regions.h"

namespace braid::nn {

at::Tensor ColumnParallelLinear::forward(const Activation& x, const Microbatch& microbatch) const {
  const LinearCall call{options_.weight, options_.bias, &rank_.weight_grads, microbatch.micro,
                        rows_of(x.value, microbatch)};
  return linear({copy_to(x.value, rank_.tensor), x.again}, call);
}

at::Tensor RowParallelLinear::forward(const Activation& x, const Microbatch& microbatch) const {
  const LinearCall call{options_.weight, nullptr, &rank_.weight_grads, microbatch.micro, rows_of(x.value, microbatch)};
  const at::Tensor y = reduce_from_(linear(x, call), rank_.tensor);
  return options_.bias ? add_bias_(y, {&rank_.weight_grads, {options_.bias, 0}, microbatch.micro}) : y;
}

}  // namespace braid::nn
