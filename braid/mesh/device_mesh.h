// A mesh of ranks: a box with named axes, whose points are the ranks. Arithmetic only: holds no communicator.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "braid/spec/mesh_spec.h"

namespace braid::mesh {

enum class Axis { Pipe, Data, Context, Expert, Tensor };
inline constexpr int kNumAxes = 5;
std::string text(Axis axis);

class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<Axis> axes) {
    for (const Axis axis : axes) bits_ |= 1u << static_cast<int>(axis);
  }
  constexpr bool has(Axis axis) const { return bits_ >> static_cast<int>(axis) & 1; }
  constexpr AxisSet complement() const { return AxisSet(~bits_ & ((1u << kNumAxes) - 1)); }
  constexpr AxisSet operator|(AxisSet other) const { return AxisSet(bits_ | other.bits_); }
  constexpr AxisSet operator-(AxisSet other) const { return AxisSet(bits_ & ~other.bits_); }
  bool operator==(const AxisSet&) const = default;

 private:
  constexpr explicit AxisSet(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

// A rank's place on each axis.
class Coords {
 public:
  int& operator[](Axis axis) { return at_[static_cast<int>(axis)]; }
  int operator[](Axis axis) const { return at_[static_cast<int>(axis)]; }
  bool operator==(const Coords&) const = default;

 private:
  std::array<int, kNumAxes> at_{};
};

// A mesh of ranks. Its axes from inner (neighbouring ranks) to outer are tensor, context, pipe, expert, data.
//
//   data 2 x pipe 2 x tensor 2:      data 0        data 1
//                           pipe 0   0 1           4 5       <- tensor 0, 1
//                           pipe 1   2 3           6 7
class DeviceMesh {
 public:
  explicit DeviceMesh(const MeshSpec& spec);

  int num_ranks() const;
  int size(Axis axis) const { return sizes_[axis]; }
  int size(AxisSet axes) const;  // product over the axes
  Coords coords(int rank) const;
  int rank(const Coords& coords) const;
  // Returns the ranks that differ from `rank` in `axes` only, including `rank`, in ascending order.
  std::vector<int> peers(int rank, AxisSet axes) const;
  // Returns the place of `rank` in peers(rank, axes).
  int index(int rank, AxisSet axes) const;

 private:
  Coords sizes_;
};

}  // namespace braid::mesh
