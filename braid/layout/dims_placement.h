// The part of a tensor that a tensor rank holds, read from its dims.
#pragma once

#include "braid/layout/tensor_sums.h"
#include "braid/mesh/placement.h"
#include "braid/model/dims.h"
#include "braid/model/model_spec.h"

namespace braid::layout {

// Returns the placement of a parameter with these dims, on a rank of `share`.
mesh::Placement placement_of(const ModelSpec& spec, const model::Extents& extents, const model::Dims& dims,
                             mesh::Share share);

// Returns that of a value. Under sequence parallelism ranks split its tokens too (tensor_sums.h).
mesh::Placement placement_of_value(const ModelSpec& spec, const model::Extents& extents, const model::Dims& dims,
                                   mesh::Share share, Sequence tokens);

}  // namespace braid::layout
