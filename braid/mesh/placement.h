// Placement: the boxes of a global tensor that a rank holds, and their places in its local tensor. Norms,
// initialisation, checkpoints and sync use it. Depends on neither torch nor communicators.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/mesh/device_mesh.h"

namespace braid::mesh {

using Index = std::vector<int64_t>;  // one entry per dim

// A half-open range of indices in every dim.
struct Box {
  Index begin, end;
  int64_t num_elements() const;
  bool empty() const { return num_elements() == 0; }
  bool operator==(const Box&) const = default;
};
template <class Pack>
void members(Pack& pack, Box& box) {  // base/packed.h
  pack(box.begin, box.end);
}
Box intersection(const Box& a, const Box& b);  // empty boxes have end == begin in some dim
int64_t num_elements(const Index& shape);

// A box of the global tensor, stored in the local tensor from `local_begin` on. Several ranks of the axis that splits
// the tensor may hold copies of the box.
struct Piece {
  Box global;
  Index local_begin;
  int copy = 0, copies = 1;  // the number of this copy, 0 .. copies - 1
  bool operator==(const Piece&) const = default;
};

// One rank's part of one parameter. Local elements outside every piece are padding and stay zero.
struct Placement {
  Index global_shape;         // without padding
  Index local_shape;          // with padding
  std::vector<Piece> pieces;  // disjoint
  AxisSet sharded;            // axes along which ranks hold other parts; along all others, copies

  bool operator==(const Placement&) const = default;
};

// Returns the placement of a tensor that every rank holds whole.
Placement replicated(const Index& shape);

// One of `parts` equal parts, and the axis whose ranks hold them.
struct Share {
  int part = 0, parts = 1;
  Axis axis = Axis::Tensor;
};

// Returns the placement of the share's slice of dim `dim`, which is first padded to `padded_extent`. REQUIRES:
// `padded_extent` is at least the dim's extent and divisible by the number of parts.
Placement split_dim(const Index& shape, int dim, int64_t padded_extent, Share share);

// Returns the placement of a tensor whose dim `dim` is a sequence of segments with these `extents`, such as fused QKV,
// or gate and up. Each segment is split into the share's parts. The local tensor holds this share of every
// segment, one after another. REQUIRES: the number of parts divides every extent.
//
//   Q0 Q1 | K0 K1 | V0 V1   ->   part 0: Q0 K0 V0    part 1: Q1 K1 V1
Placement split_segments(const Index& shape, int dim, const Index& extents, Share share);
// A segment that is split into `parts` parts. With fewer parts than ranks, neighbouring ranks hold copies of a part.
// REQUIRES: `parts` divides the number of the share's parts.
//
//   Q0 Q1 Q2 Q3 | K0 K1 | V0 V1   ->   part 0: Q0 K0 V0    part 1: Q1 K0 V0    part 2: Q2 K1 V1    part 3: Q3 K1 V1
struct Segment {
  int64_t extent = 0;
  int parts = 1;
};
Placement split_segments(const Index& shape, int dim, const std::vector<Segment>& segments, Share share);
// Same, for `segments` segments of equal extent.
Placement split_segments(const Index& shape, int dim, int segments, Share share);

// The axes along which ranks process different samples, or different tokens of a sample.
inline constexpr AxisSet kSampleAxes{Axis::Data, Axis::Context, Axis::Expert};

// Returns the axes along which ranks hold copies of the parameter. These are all axes that it is not split along,
// except the pipe axis, whose ranks hold other parameters.
AxisSet copied_axes(const Placement& placement);
// Returns the axes along which gradients are all-reduced: the copied axes whose ranks process different samples. Tensor
// ranks process the same samples, so copies on them get equal gradients.
//
//                        pipe   data   context   expert   tensor
//   dense, replicated           sum    sum       sum      copy
//   dense, split                sum    sum       sum      split
//   expert                      sum    sum       split    copy
AxisSet summed_axes(const Placement& placement);

// Returns true if the rank at `coords` counts its pieces with copy == 0, so that all ranks together count each element
// once. Such a rank has coordinate 0 on every axis along which copies lie.
bool counts_once(const Placement& placement, const Coords& coords);

}  // namespace braid::mesh
