// What a layer hands to the product behind it, which needs it again for its weight gradient: the tensor, and how to
// make it a second time where it is not to be kept until then.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace braid {

struct Activation {
  // Gives the bits of `value`, without a graph. For the backward of whoever got it: once, and before the backward of
  // whoever made it. It keeps alive what it reads, so it is let go of as soon as it has been called.
  using Again = std::function<at::Tensor()>;

  Activation(at::Tensor the_value, Again how = nullptr)  // NOLINT: a tensor is one that is kept
      : value(std::move(the_value)), again(std::move(how)) {}

  at::Tensor value;
  Again again;  // empty: `value` is kept
};

}  // namespace braid
