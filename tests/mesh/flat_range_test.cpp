// Fragments cover a range, each element once, and say rightly which global element it is.
#include "braid/mesh/flat_range.h"

#include <gtest/gtest.h>

#include <map>

namespace braid::mesh::flat_range_test {
namespace {

int64_t flat(const Index& shape, const Index& at) {
  int64_t offset = 0;
  for (size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + at[d];
  return offset;
}

// Calls body(index) for every index of the box.
template <class Body>
void for_each(const Box& box, const Body& body) {
  if (box.empty()) return;
  Index at = box.begin;
  while (true) {
    body(at);
    int d = static_cast<int>(at.size()) - 1;
    while (d >= 0 && ++at[d] == box.end[d]) at[d] = box.begin[d], --d;
    if (d < 0) return;
  }
}

using Elements = std::map<int64_t, int64_t>;  // local element -> global element; padding is not in it

Elements elements(const Placement& placement, int64_t begin) {
  Elements all;
  for (const Piece& piece : placement.pieces) {
    for_each(piece.global, [&](const Index& global) {
      Index local = global;
      for (size_t d = 0; d < local.size(); ++d) local[d] += piece.local_begin[d] - piece.global.begin[d];
      all[begin + flat(placement.local_shape, local)] = flat(placement.global_shape, global);
    });
  }
  return all;
}

void expect_fragments_of(const Placement& whole) {
  const Elements want = elements(whole, 0);
  const int64_t count = num_elements(whole.local_shape);
  for (int64_t begin = 0; begin <= count; ++begin) {
    for (int64_t end = begin; end <= count; ++end) {
      Elements got;
      int64_t next = begin;
      for (const Fragment& fragment : fragments(whole, begin, end)) {
        ASSERT_EQ(fragment.begin, next);
        next += num_elements(fragment.placement.local_shape);
        got.merge(elements(fragment.placement, fragment.begin));
      }
      ASSERT_EQ(next, end);
      const Elements inside(want.lower_bound(begin), want.lower_bound(end));
      ASSERT_EQ(got, inside) << begin << " to " << end;
    }
  }
}

TEST(FlatRange, EveryRangeOfEveryKindOfPlacement) {
  expect_fragments_of(replicated({17}));
  expect_fragments_of(replicated({5, 4}));
  expect_fragments_of(replicated({3, 2, 4}));
  expect_fragments_of(replicated({}));
  expect_fragments_of(split_dim({7, 3}, 0, 8, {1, 2}));  // padded
  expect_fragments_of(split_dim({4, 6}, 1, 6, {1, 2}));
  expect_fragments_of(split_segments({12, 2}, 0, 3, {1, 2}));  // fused
  expect_fragments_of(split_segments({3, 12}, 1, Index{8, 4}, {0, 4}));
  expect_fragments_of(split_segments({12, 2}, 0, std::vector<Segment>{{8, 4}, {2, 2}, {2, 2}}, {3, 4}));  // copies
}

TEST(FlatRange, RunsCoverThePiecesAndNoPadding) {
  using Runs = std::vector<ElementRun>;
  const auto runs = [](const Placement& placement) { return runs_of(placement.pieces, placement.local_shape); };
  EXPECT_EQ(runs(replicated({3, 4})), (Runs{{0, 12}}));
  EXPECT_EQ(runs(replicated({})), (Runs{{0, 1}}));
  EXPECT_EQ(runs(split_dim({5, 4}, 0, 8, {1, 2})), (Runs{{0, 4}}));          // one row of four
  EXPECT_EQ(runs(split_dim({2, 5}, 1, 8, {1, 2})), (Runs{{0, 1}, {4, 5}}));  // one column of four
  EXPECT_EQ(runs(split_dim({5, 4}, 0, 8, {0, 2})), (Runs{{0, 16}}));
  EXPECT_EQ(runs(split_dim({5, 4}, 0, 16, {1, 2})), (Runs{}));
  EXPECT_EQ(runs(split_segments({6, 2}, 0, 3, {1, 2})), (Runs{{0, 6}}));
}

TEST(FlatRange, IsTheFewestBoxes) {
  const std::vector<Fragment> drawn = fragments(replicated({5, 4}), 5, 17);
  ASSERT_EQ(drawn.size(), 3u);
  EXPECT_EQ(drawn[0].placement.local_shape, (Index{1, 3}));
  EXPECT_EQ(drawn[1].placement.local_shape, (Index{2, 4}));
  EXPECT_EQ(drawn[2].placement.local_shape, (Index{1, 1}));
  EXPECT_EQ(fragments(replicated({5, 4}), 0, 20).size(), 1u);
  EXPECT_TRUE(fragments(replicated({5, 4}), 3, 3).empty());
}

}  // namespace
}  // namespace braid::mesh::flat_range_test
