// The conversion between ranks and coordinates: mixed-radix arithmetic over the axes.
#include "braid/mesh/device_mesh.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::mesh {
namespace {

constexpr Axis kInnerToOuter[] = {Axis::Tensor, Axis::Context, Axis::Pipe, Axis::Expert, Axis::Data};

}  // namespace

std::string text(Axis axis) {
  static constexpr const char* kNames[] = {"pipe", "data", "context", "expert", "tensor"};
  return kNames[static_cast<int>(axis)];
}

DeviceMesh::DeviceMesh(const MeshSpec& spec) {
  sizes_[Axis::Pipe] = spec.pipe;
  sizes_[Axis::Data] = spec.data;
  sizes_[Axis::Context] = spec.context;
  sizes_[Axis::Expert] = spec.expert;
  sizes_[Axis::Tensor] = spec.tensor;
  for (const Axis axis : kInnerToOuter) check(sizes_[axis] >= 1, "a mesh axis has at least one rank");
}

int DeviceMesh::num_ranks() const { return size(AxisSet().complement()); }

int DeviceMesh::size(AxisSet axes) const {
  int product = 1;
  for (const Axis axis : kInnerToOuter) product *= axes.has(axis) ? sizes_[axis] : 1;
  return product;
}

Coords DeviceMesh::coords(int rank) const {
  check(rank >= 0 && rank < num_ranks(), "a rank lies inside its mesh");
  Coords at;
  for (const Axis axis : kInnerToOuter) {
    at[axis] = rank % sizes_[axis];
    rank /= sizes_[axis];
  }
  return at;
}

int DeviceMesh::rank(const Coords& coords) const {
  int rank = 0, stride = 1;
  for (const Axis axis : kInnerToOuter) {
    rank += coords[axis] * stride;
    stride *= sizes_[axis];
  }
  return rank;
}

std::vector<int> DeviceMesh::peers(int rank, AxisSet axes) const {
  const Coords mine = coords(rank);
  std::vector<int> found;
  for (int other = 0; other < num_ranks(); ++other) {
    const Coords theirs = coords(other);
    const bool same = std::all_of(std::begin(kInnerToOuter), std::end(kInnerToOuter),
                                  [&](Axis axis) { return axes.has(axis) || mine[axis] == theirs[axis]; });
    if (same) found.push_back(other);
  }
  return found;
}

int DeviceMesh::index(int rank, AxisSet axes) const {
  const auto group = peers(rank, axes);
  return static_cast<int>(std::find(group.begin(), group.end(), rank) - group.begin());
}

}  // namespace braid::mesh
