// Writes a parameter's initial values, as its Init asks, into its local tensor.
#pragma once

#include <cstdint>

#include "braid/param/param_store.h"

namespace braid::param {

// Writes the elements of the placement's pieces of `param.master` (contiguous, float32 or float64). Padding is not
// touched. The same (seed, name, global index) gives the same value under every placement; float32 is float64 rounded
// once.
void fill_initial_values(Parameter& param, uint64_t seed);

}  // namespace braid::param
