// A layer's output that is the input of a matrix product. The weight gradient of that product needs it again in
// backward: the tensor is kept until then, or a function recomputes it (selective recompute).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace braid::nn {

struct Activation {
  // Returns a tensor with the bits of `value`, without a graph. The consumer calls the function once, in its backward,
  // before the producer's backward. Then it destroys the function, which keeps its inputs alive.
  using Again = std::function<at::Tensor()>;

  Activation(at::Tensor the_value, Again how = nullptr)  // NOLINT: a tensor converts to an Activation that is kept
      : value(std::move(the_value)), again(std::move(how)) {}

  at::Tensor value;
  Again again;  // empty: `value` is kept
  // Starts the communication of `again`. Returns a function that waits for it, which the consumer calls in place of
  // `again`. Empty: `again` does not communicate.
  std::function<Again()> start_again = nullptr;
};

}  // namespace braid::nn
