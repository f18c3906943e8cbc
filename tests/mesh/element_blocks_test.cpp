// Blocks of elements on every placement: each local element is in the block that it has in the whole tensor.
#include "braid/mesh/element_blocks.h"

#include <gtest/gtest.h>

#include <map>

namespace braid::mesh::element_blocks_test {
namespace {

constexpr int64_t kLength = 4;

// Returns the global index of each local element that is in a piece, both in row-major order.
std::map<int64_t, int64_t> global_of_local(const Placement& whole) {
  std::map<int64_t, int64_t> all;
  for (const Piece& piece : whole.pieces) {
    for (int64_t i = 0; i < piece.global.num_elements(); ++i) {
      int64_t rest = i, global = 0, local = 0, global_stride = 1, local_stride = 1;
      for (size_t d = whole.global_shape.size(); d-- > 0;) {
        const int64_t extent = piece.global.end[d] - piece.global.begin[d], at = rest % extent;
        global += (piece.global.begin[d] + at) * global_stride;
        local += (piece.local_begin[d] + at) * local_stride;
        rest /= extent, global_stride *= whole.global_shape[d], local_stride *= whole.local_shape[d];
      }
      all[local] = global;
    }
  }
  return all;
}

void expect_blocks_of_the_whole(const Placement& part) {
  ASSERT_TRUE(has_whole_blocks(part, kLength));
  const Placement blocks = placement_of_blocks(part, kLength);
  EXPECT_EQ(num_elements(blocks.global_shape), (num_elements(part.global_shape) + kLength - 1) / kLength);
  EXPECT_EQ(num_elements(blocks.local_shape), (num_elements(part.local_shape) + kLength - 1) / kLength);
  const std::map<int64_t, int64_t> of_blocks = global_of_local(blocks);
  for (const auto& [local, global] : global_of_local(part)) {
    ASSERT_TRUE(of_blocks.contains(local / kLength));
    EXPECT_EQ(of_blocks.at(local / kLength), global / kLength) << local;
  }
}

TEST(ElementBlocks, AreThoseOfTheWholeTensorOnEveryPlacement) {
  expect_blocks_of_the_whole(replicated({}));
  expect_blocks_of_the_whole(replicated({13}));
  expect_blocks_of_the_whole(replicated({3, 5}));
  expect_blocks_of_the_whole(replicated({3, 5, 8}));
  expect_blocks_of_the_whole(split_dim({3, 5}, 0, 6, {0, 1, Axis::Tensor}));  // padded
  expect_blocks_of_the_whole(split_segments({6, 5}, 0, Index{2, 2, 2}, {0, 1, Axis::Tensor}));
  expect_blocks_of_the_whole(split_segments({6}, 0, Index{2, 2, 2}, {0, 1, Axis::Tensor}));
  expect_blocks_of_the_whole(split_segments({5, 8}, 1, Index{2, 6}, {0, 1, Axis::Tensor}));
  for (const int part : {0, 1}) {
    const Share half{part, 2, Axis::Tensor};
    expect_blocks_of_the_whole(split_dim({5, 8}, 0, 6, half));  // padded
    expect_blocks_of_the_whole(split_dim({5, 8}, 1, 8, half));
    expect_blocks_of_the_whole(split_dim({13}, 0, 16, half));  // a last block of one element
    expect_blocks_of_the_whole(split_segments({24, 8}, 0, Index{12, 6, 6}, half));
    expect_blocks_of_the_whole(split_segments({5, 32}, 1, Index{16, 8, 8}, half));
    expect_blocks_of_the_whole(split_segments({32}, 0, Index{16, 8, 8}, half));
    expect_blocks_of_the_whole(split_segments({32}, 0, std::vector<Segment>{{16, 2}, {8, 1}, {8, 1}}, half));
  }
}

TEST(ElementBlocks, AreCutByPartsThatDoNotBeginAndEndWithThem) {
  const Share half{0, 2, Axis::Tensor};
  EXPECT_FALSE(has_whole_blocks(split_dim({5, 12}, 1, 12, half), kLength));
  EXPECT_FALSE(has_whole_blocks(split_dim({6, 6}, 0, 6, half), kLength)) << "rows are no whole blocks";
  EXPECT_FALSE(has_whole_blocks(split_dim({12}, 0, 12, half), kLength));
  EXPECT_FALSE(has_whole_blocks(split_segments({24}, 0, Index{12, 6, 6}, half), kLength));
}

}  // namespace
}  // namespace braid::mesh::element_blocks_test
