// Marks the parameters that are not trained.
#pragma once

#include <functional>
#include <string>

#include "braid/layout/param_spec.h"

namespace braid::layout {

// Marks the parameters that are frozen, by their names: all uses of a tied one.
void mark_frozen(ModelParams& params, const std::function<bool(const std::string& name)>& is_frozen);

}  // namespace braid::layout
