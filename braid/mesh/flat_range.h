// A stretch of a local tensor's elements in row-major order, as boxes: what a rank owns of a parameter whose flat
// buffer is sharded.
//
//   elements 5 to 17 of a 5 x 4 tensor      . . . .
//                                           . x x x      1 x 3
//                                           x x x x      2 x 4
//                                           x x x x
//                                           x . . .      1 x 1
#pragma once

#include <cstdint>
#include <vector>

#include "braid/mesh/placement.h"

namespace braid::mesh {

// A box of the local tensor. Its elements are neighbours in memory.
struct Fragment {
  int64_t begin = 0;    // its first element, counted from the first of the local tensor
  Placement placement;  // of the box by itself: local_shape is the box's
};

// The fragments of elements [begin, end) of a tensor placed as `whole`, in order; as few as there can be. A fragment
// may contain padding, which none of its pieces covers.
std::vector<Fragment> fragments(const Placement& whole, int64_t begin, int64_t end);

}  // namespace braid::mesh
