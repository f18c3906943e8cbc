// Matrix products whose bits depend neither on the shape of the result, nor on strides, nor on the number of threads:
// the order in which an element is summed depends only on the inner dimension and its parts. So ranks that each hold
// some rows or columns of an operand compute the bits of one rank that holds all.
//
// The inner dimension is cut into parts. The sums of the parts are added in the order of Communicator's sums, a
// balanced tree. So t ranks that each have 1/t of the parts, a power of two of them, continue the tree in their
// all-reduce:
//
//   part       0   1   2   3 | 4   5   6   7
//               \ /     \ /  |  \ /     \ /
//                +       +   |   +       +       in the product of each rank
//                 \     /    |    \     /
//                  -----     |     -----
//                    \_______|______/            in the all-reduce
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace braid::kernels {

struct InnerParts {
  int count = 1;
  std::vector<int64_t> segments =
      {};  // extents in the inner dimension; part p has the p-th of each. Empty: one segment
};

// Returns the begin of part `p` of `count` of an extent. The sizes of parts differ by at most one. If t divides the
// extent and `count`, each t-th of the extent consists of whole parts.
inline int64_t part_begin(int64_t extent, int64_t p, int64_t count) { return extent * p / count; }

// Computes out = beta out + a b, and adds bias to every row if it is defined; beta is 0 or 1. CPU tensors: out [n, o],
// a [n, k], b [k, o], bias [o]. a and b: both of float32, float64, bfloat16 or float16, any strides. out and bias: of
// their type, or out of float32. Narrow types are summed in float32 and rounded once. Within a part, elements are
// summed in stretches of a fixed length, in an order of the tile kernels (tile_sums.h), and the sums of stretches are
// added one after another.
void product_in_parts(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const InnerParts& parts,
                      const at::Tensor& bias = {}, double beta = 0);

// Adds the `count` slices along dim 0 of x in that tree. Returns [..], with x [count, ..] contiguous, of float32 or
// float64.
at::Tensor tree_sum(const at::Tensor& x);

}  // namespace braid::kernels
