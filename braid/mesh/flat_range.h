// Splits a range of a local tensor's elements, in row-major order, into boxes. If the flat buffer is sharded, a rank
// owns such a range of a parameter.
//
//   elements 5 to 17 of a 5 x 4 tensor      . . . .
//                                           . x x x      1 x 3
//                                           x x x x      2 x 4
//                                           x x x x
//                                           x . . .      1 x 1
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/mesh/placement.h"

namespace braid::mesh {

// A box of the local tensor, contiguous in memory.
struct Fragment {
  int64_t begin = 0;    // its first element, counted in the local tensor
  Placement placement;  // placement of the box alone: local_shape is the box's
};

// Returns the fragments of elements [begin, end) of a tensor placed as `whole`, in order, and as few as possible. A
// fragment may contain padding, which none of its pieces covers.
std::vector<Fragment> fragments(const Placement& whole, int64_t begin, int64_t end);

// Elements [begin, end) of a local tensor, in row-major order.
struct ElementRun {
  int64_t begin = 0, end = 0;
  bool operator==(const ElementRun&) const = default;
};

// Returns the elements of disjoint `pieces` in a local tensor of `local_shape`, in ascending order and as few runs as
// possible.
std::vector<ElementRun> runs_of(std::span<const Piece> pieces, const Index& local_shape);

}  // namespace braid::mesh
