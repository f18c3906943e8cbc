// Over all parts of a placement every global element is held exactly once.
#include "braid/mesh/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "braid/base/errors.h"

namespace braid::mesh::placement_test {
namespace {

// Every index of a box, in row-major order.
std::vector<Index> indices(const Box& box) {
  if (box.empty()) return {};
  std::vector<Index> all;
  for (Index at = box.begin;;) {
    all.push_back(at);
    int d = static_cast<int>(at.size()) - 1;
    while (d >= 0 && ++at[d] == box.end[d]) {
      at[d] = box.begin[d];
      --d;
    }
    if (d < 0) return all;
  }
}

// Local index -> global index, and checks that pieces lie inside both tensors and nowhere overlap.
std::map<Index, Index> local_to_global(const Placement& placement) {
  std::map<Index, Index> map;
  std::set<Index> globals;
  for (const auto& piece : placement.pieces) {
    EXPECT_FALSE(piece.global.empty());
    for (const auto& global : indices(piece.global)) {
      Index local(global.size());
      for (size_t d = 0; d < global.size(); ++d) {
        local[d] = global[d] - piece.global.begin[d] + piece.local_begin[d];
        EXPECT_TRUE(local[d] >= 0 && local[d] < placement.local_shape[d]);
        EXPECT_TRUE(global[d] >= 0 && global[d] < placement.global_shape[d]);
      }
      EXPECT_TRUE(map.emplace(local, global).second) << "two pieces share a local element";
      EXPECT_TRUE(globals.insert(global).second) << "two pieces share a global element";
    }
  }
  return map;
}

// All parts together hold every global element exactly once.
void expect_exact_cover(const std::vector<Placement>& parts) {
  std::map<Index, int> held;
  for (const auto& part : parts) {
    EXPECT_EQ(part.local_shape, parts[0].local_shape) << "padding makes all parts equal";
    for (const auto& [local, global] : local_to_global(part)) ++held[global];
  }
  const Index& shape = parts[0].global_shape;
  EXPECT_EQ(static_cast<int64_t>(held.size()), num_elements(shape));
  for (const auto& [global, count] : held) EXPECT_EQ(count, 1);
}

TEST(Placement, ReplicatedHoldsAllOfIt) {
  for (const Index& shape : {Index{}, Index{5}, Index{2, 3, 4}}) {
    const auto placement = replicated(shape);
    expect_exact_cover({placement});
    for (const auto& [local, global] : local_to_global(placement)) EXPECT_EQ(local, global);
    EXPECT_EQ(placement.sharded, AxisSet());
  }
}

TEST(Placement, SplitDimCoversExactlyOnceWithAndWithoutPadding) {
  for (const Index& shape : {Index{7}, Index{12}, Index{5, 3}, Index{3, 8}, Index{2, 7, 3}}) {
    for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
      for (const int parts : {1, 2, 3, 4, 6, 8}) {
        for (const int64_t multiple : {1, 2, 5}) {
          const int64_t unit = parts * multiple, padded = (shape[dim] + unit - 1) / unit * unit;
          std::vector<Placement> all;
          for (int part = 0; part < parts; ++part) {
            all.push_back(split_dim(shape, dim, padded, {part, parts, Axis::Tensor}));
            EXPECT_EQ(all.back().local_shape[dim], padded / parts);
            EXPECT_EQ(all.back().sharded, AxisSet{Axis::Tensor});
          }
          expect_exact_cover(all);
        }
      }
    }
  }
}

TEST(Placement, SplitDimPutsPaddingAtTheEnd) {
  const auto part = [](int p) { return split_dim({5, 2}, 0, 8, {p, 4, Axis::Tensor}); };
  EXPECT_EQ(part(0).pieces, (std::vector<Piece>{{{{0, 0}, {2, 2}}, {0, 0}}}));
  EXPECT_EQ(part(2).pieces, (std::vector<Piece>{{{{4, 0}, {5, 2}}, {0, 0}}}));
  EXPECT_TRUE(part(3).pieces.empty()) << "a part that is all padding";
  EXPECT_EQ(part(3).local_shape, (Index{2, 2}));
}

TEST(Placement, SplitSegmentsCoversExactlyOnce) {
  for (const int segments : {1, 2, 3}) {
    for (const int parts : {1, 2, 3, 4}) {
      for (const int dim : {0, 1}) {
        Index shape = {5, 5};
        shape[dim] = segments * parts * 2;
        std::vector<Placement> all;
        for (int part = 0; part < parts; ++part) {
          all.push_back(split_segments(shape, dim, segments, {part, parts, Axis::Tensor}));
          EXPECT_EQ(static_cast<int64_t>(local_to_global(all.back()).size()), num_elements(all.back().local_shape));
        }
        expect_exact_cover(all);
      }
    }
  }
}

// The drawing in placement.h: Q0 Q1 | K0 K1 | V0 V1 -> part 0: Q0 K0 V0, part 1: Q1 K1 V1.
TEST(Placement, PictureOfFusedSegments) {
  const std::string names[] = {"Q0", "Q1", "K0", "K1", "V0", "V1"};
  const std::string expected[] = {"Q0 K0 V0 ", "Q1 K1 V1 "};
  for (const int part : {0, 1}) {
    std::string held;
    for (const auto& [local, global] : local_to_global(split_segments({6}, 0, 3, {part, 2, Axis::Tensor}))) {
      held += names[global[0]] + " ";
    }
    EXPECT_EQ(held, expected[part]);
  }
}

TEST(Placement, UnequalSegmentsCoverExactlyOnce) {
  for (const Index& extents : {Index{12, 6, 6}, Index{6, 12}, Index{18}}) {
    int64_t total = 0;
    for (const int64_t extent : extents) total += extent;
    for (const int parts : {1, 2, 3, 6}) {
      std::vector<Placement> all;
      for (int part = 0; part < parts; ++part) {
        all.push_back(split_segments({2, total}, 1, extents, {part, parts, Axis::Tensor}));
        EXPECT_EQ(all.back().local_shape, (Index{2, total / parts}));
        EXPECT_EQ(all.back().pieces.size(), extents.size());
      }
      expect_exact_cover(all);
    }
  }
}

// Grouped queries: q0 q1 q2 q3 | k0 k1 | v0 v1 over two parts.
TEST(Placement, UnequalSegmentsLieOneAfterAnother) {
  const std::string names[] = {"q0", "q1", "q2", "q3", "k0", "k1", "v0", "v1"};
  const std::string expected[] = {"q0 q1 k0 v0 ", "q2 q3 k1 v1 "};
  for (const int part : {0, 1}) {
    std::string held;
    for (const auto& [local, global] :
         local_to_global(split_segments({8}, 0, Index{4, 2, 2}, {part, 2, Axis::Tensor}))) {
      held += names[global[0]] + " ";
    }
    EXPECT_EQ(held, expected[part]);
  }
}

// The drawing in placement.h. Of the ranks that hold a piece, one has copy 0.
TEST(Placement, SegmentsOfFewerPartsAreCopied) {
  const std::string names[] = {"Q0", "Q1", "Q2", "Q3", "K0", "K1", "V0", "V1"};
  const std::string expected[] = {"Q0 K0 V0 ", "Q1 K0 V0 ", "Q2 K1 V1 ", "Q3 K1 V1 "};
  for (int part = 0; part < 4; ++part) {
    const Placement placed =
        split_segments({8}, 0, std::vector<Segment>{{4, 4}, {2, 2}, {2, 2}}, {part, 4, Axis::Tensor});
    std::string held;
    for (const auto& [local, global] : local_to_global(placed)) held += names[global[0]] + " ";
    EXPECT_EQ(held, expected[part]);
    EXPECT_EQ(placed.pieces[0].copies, 1);
    for (const size_t segment : {1, 2}) {
      EXPECT_EQ(placed.pieces[segment].copies, 2);
      EXPECT_EQ(placed.pieces[segment].copy, part % 2);
    }
  }
}

TEST(Placement, RefusesUnevenSplits) {
  EXPECT_THROW(split_segments({8}, 0, std::vector<Segment>{{4, 4}, {4, 3}}, {0, 4, Axis::Tensor}), InternalError);
  EXPECT_THROW(split_dim({5}, 0, 5, {0, 2, Axis::Tensor}), InternalError);
  EXPECT_THROW(split_dim({5}, 0, 4, {0, 2, Axis::Tensor}), InternalError);
  EXPECT_THROW(split_segments({6}, 0, 3, {0, 4, Axis::Tensor}), InternalError);
  EXPECT_THROW(split_segments({7}, 0, 3, {0, 1, Axis::Tensor}), InternalError);
  EXPECT_THROW(split_segments({8}, 0, Index{4, 3, 1}, {0, 2, Axis::Tensor}), InternalError);
  EXPECT_THROW(split_segments({8}, 0, Index{4, 2}, {0, 2, Axis::Tensor}), InternalError) << "segments that miss a part";
}

// Over all ranks of a stage, the ranks that speak for a placement hold each element once.
TEST(Placement, CountsOnceIsOnce) {
  const DeviceMesh mesh({.pipe = 2, .data = 2, .context = 2, .expert = 2, .tensor = 3});
  const auto placed = [&](const Coords& at, Axis axis) {  // split along the pipe axis: not at all
    return axis == Axis::Pipe ? replicated({7}) : split_dim({7}, 0, 12, {at[axis], mesh.size(axis), axis});
  };
  for (const Axis axis : {Axis::Pipe, Axis::Tensor, Axis::Expert, Axis::Data}) {
    std::map<int, std::map<Index, int>> counts;  // by pipe stage
    for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
      const Coords at = mesh.coords(rank);
      const auto placement = placed(at, axis);
      if (!counts_once(placement, at)) continue;
      for (const auto& [local, global] : local_to_global(placement)) ++counts[at[Axis::Pipe]][global];
    }
    EXPECT_EQ(counts.size(), 2u) << "both stages speak";
    for (const auto& [stage, held] : counts) {
      EXPECT_EQ(held.size(), 7u);
      for (const auto& [global, count] : held) EXPECT_EQ(count, 1);
    }
  }
}

// Ranks that differ along copied_axes() alone hold the same, all others something else.
TEST(Placement, CopiesLieAlongTheAxesThatItIsNotSplitAlong) {
  const DeviceMesh mesh({.data = 2, .context = 2, .expert = 2, .tensor = 2});
  for (const Axis axis : {Axis::Data, Axis::Context, Axis::Expert, Axis::Tensor}) {
    const auto on = [&](int rank) { return split_dim({4}, 0, 4, {mesh.coords(rank)[axis], 2, axis}); };
    const std::vector<int> copies = mesh.peers(0, copied_axes(on(0)));
    EXPECT_EQ(copies.size(), 8u);
    for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
      EXPECT_EQ(on(rank).pieces == on(0).pieces, std::find(copies.begin(), copies.end(), rank) != copies.end());
    }
  }
  EXPECT_EQ(copied_axes(replicated({4})), AxisSet{Axis::Pipe}.complement());
}

TEST(Placement, GradientsAreSummedOverCopiesThatSeeOtherSamples) {
  const auto split = [](Axis axis) { return summed_axes(split_dim({4}, 0, 4, {0, 2, axis})); };
  EXPECT_EQ(summed_axes(replicated({4})), (AxisSet{Axis::Data, Axis::Context, Axis::Expert}));
  EXPECT_EQ(split(Axis::Tensor), (AxisSet{Axis::Data, Axis::Context, Axis::Expert}));
  EXPECT_EQ(split(Axis::Expert), (AxisSet{Axis::Data, Axis::Context}));
}

TEST(Box, IntersectionAgreesWithMembership) {
  const auto inside = [](const Box& box, const Index& at) {
    for (size_t d = 0; d < at.size(); ++d) {
      if (at[d] < box.begin[d] || at[d] >= box.end[d]) return false;
    }
    return true;
  };
  const auto grid = indices({{0, 0}, {4, 4}});
  const auto corners = indices({{0, 0}, {3, 3}});
  for (const auto& begin : corners) {
    const Box a{begin, {begin[0] + 2, 4}}, b{{1, 1}, {3, 2 + begin[1]}};
    const Box both = intersection(a, b);
    EXPECT_EQ(both, intersection(both, both));
    int64_t count = 0;
    for (const auto& at : grid) {
      const bool expected = inside(a, at) && inside(b, at);
      EXPECT_EQ(inside(both, at), expected);
      count += expected;
    }
    EXPECT_EQ(count, both.num_elements());
  }
  const Box apart = intersection({{0}, {2}}, {{5}, {7}});
  EXPECT_TRUE(apart.empty());
  EXPECT_EQ(apart.begin, apart.end);
  EXPECT_EQ((Box{{3}, {1}}).num_elements(), 0) << "an inside-out box is empty";
}

TEST(Box, ElementsMultiply) {
  EXPECT_EQ(num_elements({}), 1);
  EXPECT_EQ(num_elements({3, 4, 5}), 60);
  EXPECT_EQ(num_elements({3, 0, 5}), 0);
  EXPECT_EQ(num_elements({1 << 20, 1 << 20}), int64_t{1} << 40);
  EXPECT_EQ((Box{{1, 2}, {4, 4}}).num_elements(), 6);
}

}  // namespace
}  // namespace braid::mesh::placement_test
