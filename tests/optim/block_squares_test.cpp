// The device's sums of squares, run by threads of the host, against plain loops.
#include <gtest/gtest.h>

#include "braid/optim/flat_squares.h"
#include "tests/support/host_team.h"

namespace braid::optim::block_squares_test {
namespace {

template <class T>
void expect_squares(int team_size) {
  constexpr int64_t kBlocks = 5;
  const std::vector<int64_t> first_block{0, 2, 2, 5};  // the second slice is empty
  std::vector<T> values;
  for (int64_t i = 0; i < kBlocks * kFlatBlock; ++i) values.push_back(static_cast<T>(i % 97) / 8);
  std::vector<double> of_blocks(kBlocks), of_slices(3, -1);
  const FlatSquares<T> call{values.data(), kBlocks, 3, first_block.data(), of_blocks.data(), of_slices.data()};
  run_team(team_size, [&](const HostTeam& team) {
    for (int64_t b = 0; b < kBlocks; ++b) team_square_block(call, b, team);
    for (int64_t s = 0; s < 3; ++s) team_sum_slice(call, s, team);
  });
  for (size_t s = 0; s < 3; ++s) {
    double expected = 0;
    for (int64_t i = first_block[s] * kFlatBlock; i < first_block[s + 1] * kFlatBlock; ++i) {
      expected += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    EXPECT_EQ(of_slices[s], expected) << "exact: sums of small multiples of 1/64";
  }
}

TEST(BlockSquares, EachSliceHasItsBlocksOnce) {
  for (const int team_size : {1, 3}) {
    expect_squares<float>(team_size);
    expect_squares<double>(team_size);
  }
}

}  // namespace
}  // namespace braid::optim::block_squares_test
