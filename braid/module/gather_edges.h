// Points in an autograd graph at which something is called: on the way back, before a layer's backward begins and after
// it has given its input's gradient. Values and gradients pass unchanged.
#pragma once

#include <functional>
#include <memory>

#include "braid/module/layer_call.h"

namespace braid::modules {

// The tensors again; when the gradients of all that need one have come, `call` runs, before they go on. Where none
// needs a gradient it never runs.
Tensors with_call_in_backward(const Tensors& tensors, std::shared_ptr<const std::function<void()>> call);

}  // namespace braid::modules
