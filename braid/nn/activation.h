// A layer's output for the next matrix product, whose weight gradient needs it again: the tensor, and a function that
// recomputes it if it is not kept until then (selective recompute).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace braid::nn {

struct Activation {
  // Gives the bits of `value`, without a graph. The consumer calls it in its backward, once, before the producer's
  // backward, and drops it right after, since it keeps alive what it reads.
  using Again = std::function<at::Tensor()>;

  Activation(at::Tensor the_value, Again how = nullptr)  // NOLINT: a tensor converts to an Activation that is kept
      : value(std::move(the_value)), again(std::move(how)) {}

  at::Tensor value;
  Again again;  // empty: `value` is kept
};

}  // namespace braid::nn
