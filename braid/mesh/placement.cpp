// The placements of tensors, computed as boxes.
#include "braid/mesh/placement.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::mesh {
namespace {

Box whole(const Index& shape) { return {Index(shape.size(), 0), shape}; }

// Returns the piece of `shape` with indices [begin, end) in `dim`. In the local tensor it begins at index `local` of
// that dim.
Piece slab(const Index& shape, int dim, int64_t begin, int64_t end, int64_t local) {
  Piece piece{whole(shape), Index(shape.size(), 0)};
  piece.global.begin[dim] = begin;
  piece.global.end[dim] = std::max(begin, end);
  piece.local_begin[dim] = local;
  return piece;
}

}  // namespace

int64_t num_elements(const Index& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

int64_t Box::num_elements() const {
  int64_t n = 1;
  for (size_t d = 0; d < begin.size(); ++d) n *= std::max<int64_t>(0, end[d] - begin[d]);
  return n;
}

Box intersection(const Box& a, const Box& b) {
  Box both = a;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    both.begin[d] = std::max(a.begin[d], b.begin[d]);
    both.end[d] = std::max(both.begin[d], std::min(a.end[d], b.end[d]));
  }
  return both;
}

Placement replicated(const Index& shape) { return {shape, shape, {{whole(shape), Index(shape.size(), 0)}}, {}}; }

Placement split_dim(const Index& shape, int dim, int64_t padded_extent, Share share) {
  const auto [part, parts, axis] = share;
  check(padded_extent >= shape[dim] && padded_extent % parts == 0, "a padded extent holds the dim and divides evenly");
  const int64_t extent = padded_extent / parts;
  Placement placement{shape, shape, {}, {axis}};
  placement.local_shape[dim] = extent;
  const int64_t begin = std::min(shape[dim], part * extent), end = std::min(shape[dim], (part + 1) * extent);
  if (end > begin) placement.pieces.push_back(slab(shape, dim, begin, end, 0));
  return placement;
}

Placement split_segments(const Index& shape, int dim, const std::vector<Segment>& segments, Share share) {
  Placement placement{shape, shape, {}, {share.axis}};
  int64_t global = 0, local = 0;
  for (const auto& [whole, parts] : segments) {
    check(share.parts % parts == 0, "as many ranks hold each part of a segment");
    check(whole % parts == 0, "segments divide evenly over the parts");
    const int copies = share.parts / parts;
    const int64_t extent = whole / parts, begin = global + share.part / copies * extent;
    Piece piece = slab(shape, dim, begin, begin + extent, local);
    piece.copy = share.part % copies;
    piece.copies = copies;
    placement.pieces.push_back(std::move(piece));
    global += whole;
    local += extent;
  }
  check(global == shape[dim], "segments make up the dim");
  placement.local_shape[dim] = local;
  return placement;
}

Placement split_segments(const Index& shape, int dim, const Index& extents, Share share) {
  std::vector<Segment> segments;
  for (const int64_t extent : extents) segments.push_back({extent, share.parts});
  return split_segments(shape, dim, segments, share);
}

Placement split_segments(const Index& shape, int dim, int segments, Share share) {
  check(shape[dim] % segments == 0, "equal segments make up the dim");
  return split_segments(shape, dim, Index(segments, shape[dim] / segments), share);
}

AxisSet copied_axes(const Placement& placement) { return AxisSet{Axis::Pipe}.complement() - placement.sharded; }

AxisSet summed_axes(const Placement& placement) { return kSampleAxes - placement.sharded; }

bool counts_once(const Placement& placement, const Coords& coords) {
  for (const Axis axis : {Axis::Data, Axis::Context, Axis::Expert, Axis::Tensor}) {
    if (copied_axes(placement).has(axis) && coords[axis] != 0) return false;
  }
  return true;
}

}  // namespace braid::mesh
