// Ranks and coordinates are two names of the same places.
#include "braid/mesh/device_mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::mesh::device_mesh_test {
namespace {

constexpr Axis kAxes[] = {Axis::Pipe, Axis::Data, Axis::Context, Axis::Expert, Axis::Tensor};

std::vector<MeshSpec> meshes() {
  std::vector<MeshSpec> all;
  for (const int pipe : {1, 2, 3}) {
    for (const int data : {1, 2, 4}) {
      for (const int tensor : {1, 2, 3}) {
        for (const int rest : {1, 2}) all.push_back({pipe, data, rest, 3 - rest, tensor});
      }
    }
  }
  return all;
}

std::vector<AxisSet> axis_sets() {
  std::vector<AxisSet> all;
  for (const Axis a : kAxes) {
    for (const Axis b : kAxes) {
      all.push_back({a, b});
      all.push_back(AxisSet{a, b}.complement());
    }
  }
  all.push_back({});
  all.push_back(AxisSet().complement());
  return all;
}

// The drawing in device_mesh.h.
std::string drawing(const DeviceMesh& mesh) {
  std::string lines;
  for (int pipe = 0; pipe < mesh.size(Axis::Pipe); ++pipe) {
    std::string line = cat("pipe ", pipe, " ");
    for (int data = 0; data < mesh.size(Axis::Data); ++data) {
      line += data == 0 ? "  " : "         ";
      std::vector<std::string> ranks;
      for (int tensor = 0; tensor < mesh.size(Axis::Tensor); ++tensor) {
        Coords at;
        at[Axis::Pipe] = pipe;
        at[Axis::Data] = data;
        at[Axis::Tensor] = tensor;
        ranks.push_back(cat(mesh.rank(at)));
      }
      line += joined(ranks, " ");
    }
    lines += line + "\n";
  }
  return lines;
}

TEST(DeviceMesh, PictureOfTheOrder) {
  EXPECT_EQ(drawing(DeviceMesh({.pipe = 2, .data = 2, .tensor = 2})),
            "pipe 0   0 1         4 5\n"
            "pipe 1   2 3         6 7\n");
}

TEST(DeviceMesh, RanksAndCoordinatesAreABijection) {
  for (const auto& spec : meshes()) {
    const DeviceMesh mesh(spec);
    EXPECT_EQ(mesh.num_ranks(), spec.pipe * spec.data * spec.context * spec.expert * spec.tensor);
    EXPECT_EQ(mesh.num_ranks(), num_ranks(spec));
    std::set<std::vector<int>> seen;
    for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
      const Coords at = mesh.coords(rank);
      EXPECT_EQ(mesh.rank(at), rank);
      std::vector<int> place;
      for (const Axis axis : kAxes) {
        EXPECT_GE(at[axis], 0);
        EXPECT_LT(at[axis], mesh.size(axis));
        place.push_back(at[axis]);
      }
      EXPECT_TRUE(seen.insert(place).second);
    }
  }
}

TEST(DeviceMesh, PeersPartitionTheRanks) {
  for (const auto& spec : meshes()) {
    const DeviceMesh mesh(spec);
    for (const AxisSet axes : axis_sets()) {
      std::set<std::vector<int>> groups;
      size_t covered = 0;
      for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
        const auto group = mesh.peers(rank, axes);
        EXPECT_EQ(static_cast<int>(group.size()), mesh.size(axes));
        EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
        EXPECT_EQ(group.at(mesh.index(rank, axes)), rank);
        for (const int peer : group) EXPECT_EQ(mesh.peers(peer, axes), group);
        if (groups.insert(group).second) covered += group.size();
      }
      EXPECT_EQ(static_cast<int>(covered), mesh.num_ranks());
    }
  }
}

TEST(DeviceMesh, PeersDifferInTheirAxesOnly) {
  const DeviceMesh mesh({.pipe = 2, .data = 2, .context = 2, .expert = 2, .tensor = 3});
  for (const AxisSet axes : axis_sets()) {
    for (int rank = 0; rank < mesh.num_ranks(); rank += 5) {
      for (const int peer : mesh.peers(rank, axes)) {
        for (const Axis axis : kAxes) {
          EXPECT_TRUE(axes.has(axis) || mesh.coords(peer)[axis] == mesh.coords(rank)[axis]);
        }
      }
    }
  }
}

// Along one axis a rank's place among its peers is its coordinate: communicators are built on this.
TEST(DeviceMesh, IndexAlongOneAxisIsTheCoordinate) {
  for (const auto& spec : meshes()) {
    const DeviceMesh mesh(spec);
    for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
      for (const Axis axis : kAxes) EXPECT_EQ(mesh.index(rank, {axis}), mesh.coords(rank)[axis]);
    }
  }
}

TEST(DeviceMesh, TensorPeersAreNeighbours) {
  const DeviceMesh mesh({.pipe = 2, .data = 2, .tensor = 4});
  EXPECT_EQ(mesh.peers(5, {Axis::Tensor}), (std::vector{4, 5, 6, 7}));
  EXPECT_EQ(mesh.peers(5, {Axis::Pipe}), (std::vector{1, 5}));
  EXPECT_EQ(mesh.peers(5, {Axis::Data}), (std::vector{5, 13}));
  EXPECT_EQ(mesh.peers(5, {Axis::Pipe, Axis::Data}), (std::vector{1, 5, 9, 13}));
  EXPECT_EQ(mesh.peers(5, {}), (std::vector{5}));
}

// From inner to outer: tensor, context, pipe, expert, data. Each step along an axis passes over all inner ones.
TEST(DeviceMesh, OrderOfTheAxes) {
  const DeviceMesh mesh({.pipe = 2, .data = 2, .context = 3, .expert = 5, .tensor = 7});
  const auto stride = [&](Axis axis) {
    Coords at;
    at[axis] = 1;
    return mesh.rank(at);
  };
  EXPECT_EQ(stride(Axis::Tensor), 1);
  EXPECT_EQ(stride(Axis::Context), 7);
  EXPECT_EQ(stride(Axis::Pipe), 7 * 3);
  EXPECT_EQ(stride(Axis::Expert), 7 * 3 * 2);
  EXPECT_EQ(stride(Axis::Data), 7 * 3 * 2 * 5);
}

TEST(DeviceMesh, RefusesWhatIsNoMesh) {
  EXPECT_THROW(DeviceMesh({.pipe = 0}), InternalError);
  EXPECT_THROW(DeviceMesh({.data = -1}), InternalError);
  const DeviceMesh mesh({.data = 2});
  EXPECT_THROW(mesh.coords(2), InternalError);
  EXPECT_THROW(mesh.coords(-1), InternalError);
}

TEST(AxisSet, HasItsAxes) {
  constexpr AxisSet set{Axis::Data, Axis::Tensor};
  static_assert(set.has(Axis::Data) && set.has(Axis::Tensor) && !set.has(Axis::Pipe));
  EXPECT_EQ(set.complement(), (AxisSet{Axis::Pipe, Axis::Context, Axis::Expert}));
  EXPECT_EQ(set.complement().complement(), set);
  std::vector<std::string> names;
  for (const Axis axis : kAxes) names.push_back(text(axis));
  EXPECT_EQ(joined(names), "pipe, data, context, expert, tensor");
}

}  // namespace
}  // namespace braid::mesh::device_mesh_test
