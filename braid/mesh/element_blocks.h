// Blocks of consecutive elements of a tensor, in row-major order, with something of each block in a tensor of its own:
// the scales of optimizer states in 8 bits. Blocks belong to the global tensor, so they do not depend on how ranks
// split it, and every rank has its elements by whole blocks.
#pragma once

#include <cstdint>

#include "braid/mesh/placement.h"

namespace braid::mesh {

// Returns true if the local tensor has whole blocks of `length` elements, at multiples of `length`. The last block of
// the global tensor may be shorter, and then ends with padding.
bool has_whole_blocks(const Placement& whole, int64_t length);

// Returns the placement of a tensor with an element for each block. Its last dim has the blocks of a row; if rows are
// no whole blocks, it has one dim. Elements of the local tensors correspond in order: block i has elements from
// i * length on. REQUIRES: has_whole_blocks().
Placement placement_of_blocks(const Placement& whole, int64_t length);

}  // namespace braid::mesh
