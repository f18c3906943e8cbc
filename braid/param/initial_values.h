// Writes a parameter's initial values, as given by its Init, into its local tensor.
#pragma once

#include <cstdint>

#include "braid/param/param_store.h"

namespace braid::param {

// Writes the elements of the placement's pieces of `param.master` (contiguous, float32 or float64). Does not write
// padding. The same (seed, name, global index) gives the same value under every placement. A float32 value is the
// float64 value rounded once.
void fill_initial_values(Parameter& param, uint64_t seed);

}  // namespace braid::param
