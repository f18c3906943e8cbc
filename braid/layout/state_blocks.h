// The rule of optimizer states in 8 bits on tensor ranks: each rank has whole blocks of kStateBlock elements.
#pragma once

#include <functional>
#include <vector>

#include "braid/base/errors.h"
#include "braid/layout/param_spec.h"
#include "braid/spec/run_spec.h"

namespace braid::layout {

// Returns the problem of optimizer.state_dtype = "int8" if a tensor rank would have a part of a block of a trained
// parameter. `params_of` returns the parameters of a tensor rank, by its number.
std::vector<Problem> state_block_problems(const RunSpec& spec, const std::function<ModelParams(int)>& params_of);
// The same for the model of spec.model; empty if its parameters cannot be listed, since something else is wrong.
std::vector<Problem> state_block_problems(const RunSpec& spec);

}  // namespace braid::layout
