// The parameters of a rank's blocks, without memory.
#pragma once

#include <vector>

#include "braid/layout/param_spec.h"
#include "braid/param/parameter.h"

namespace braid::param {

// Returns the parameters of the blocks that are trained, or those that are not. Parameters of equal name become one.
std::vector<Parameter> parameters_of(const std::vector<layout::BlockSpec>& blocks, model::Trained trained);

// Returns for each parameter the first block that has it.
std::vector<int> first_blocks(const std::vector<Parameter>& params, const std::vector<layout::BlockSpec>& blocks);

}  // namespace braid::param
