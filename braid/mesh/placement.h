// Placement: the boxes of a global tensor that a rank holds, and their places in its local tensor.
// Norms, initialisation, checkpoints and sync read it; it knows no torch and no communicator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/mesh/device_mesh.h"

namespace braid::mesh {

using Index = std::vector<int64_t>;  // one entry per dim

// Half-open range of indices in every dim.
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

// A box of the global tensor, stored in the local tensor from `local_begin` on.
struct Piece {
  Box global;
  Index local_begin;
  bool operator==(const Piece&) const = default;
};

// One rank's part of one parameter. Local elements outside every piece are padding and stay zero.
struct Placement {
  Index global_shape;         // without padding
  Index local_shape;          // with padding
  std::vector<Piece> pieces;  // disjoint
  AxisSet sharded;            // ranks differ along these axes, and hold copies along all others

  bool operator==(const Placement&) const = default;
};

// Every rank holds all of it.
Placement replicated(const Index& shape);

// One of equal parts, and the axis whose ranks hold them.
struct Share {
  int part = 0, parts = 1;
  Axis axis = Axis::Tensor;
};

// The share's slice of dim `dim`, which is first padded to `padded_extent` (at least the extent, divisible by the
// parts).
Placement split_dim(const Index& shape, int dim, int64_t padded_extent, Share share);

// dim `dim` is segments of these `extents` one after another (fused QKV, gate and up), each split into the share's
// parts; the local tensor holds the share's part of every segment, one after another. The parts divide every extent.
//
//   Q0 Q1 | K0 K1 | V0 V1   ->   part 0: Q0 K0 V0    part 1: Q1 K1 V1
Placement split_segments(const Index& shape, int dim, const Index& extents, Share share);
// The same for `segments` equal ones.
Placement split_segments(const Index& shape, int dim, int segments, Share share);

// The axes along which ranks see other samples, or other tokens of a sample.
inline constexpr AxisSet kSampleAxes{Axis::Data, Axis::Context, Axis::Expert};

// The axes along which ranks hold copies: all that the parameter is not split along, but for the pipe axis, whose ranks
// hold other parameters.
AxisSet copied_axes(const Placement& placement);
// Those of them along which gradients are summed: copies there see other samples. Tensor ranks see the same ones, and
// copies on them get equal gradients.
//
//                        pipe   data   context   expert   tensor
//   dense, replicated           sum    sum       sum      copy
//   dense, split                sum    sum       sum      split
//   of an expert                sum    sum       split    copy
AxisSet summed_axes(const Placement& placement);

// Returns true if the rank at `coords` counts its pieces, so that all ranks together count each element once: its
// coordinate is 0 on every axis along which copies lie.
bool counts_once(const Placement& placement, const Coords& coords);

}  // namespace braid::mesh
