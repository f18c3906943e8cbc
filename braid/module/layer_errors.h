// Errors of a layer's forward, with the layer's name.
#pragma once

#include <functional>
#include <string>

#include "braid/module/layer_call.h"

namespace braid::modules {

// Returns the result of `forward`. If it throws an error of base/errors.h, the error passes; a ConfigError gets `where`
// before its keys, as "layer fc of stage 1". Any other exception becomes a RunError with `where` and its message.
Tensors with_layer_name(const std::string& where, const std::function<Tensors()>& forward);

}  // namespace braid::modules
