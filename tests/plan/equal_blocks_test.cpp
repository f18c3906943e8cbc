// Cuts of equal blocks beside the search that takes any units.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "braid/plan/partition.h"
#include "tests/support/dice.h"

namespace braid::plan::equal_blocks_test {
namespace {

struct Case {
  int num_blocks = 0;
  std::vector<BlockStage> stages;
  PartitionRequest request;  // the same
};

// A loop, or a V of two stages on each rank, of an embedding, blocks of twice a half's time, and a head.
Case drawn_case(uint64_t seed) {
  Dice dice(seed);
  Case drawn;
  const int ranks = dice.between(1, 4), chunks = dice.between(1, 3), num_stages = ranks * chunks;
  const bool turned = chunks == 2 && dice.between(0, 1) == 1;
  const double half = dice.between(1, 4), embedding = dice.between(1, 6), head = dice.between(1, 30);
  drawn.num_blocks = num_stages + dice.between(0, 3);
  for (int rank = 0; rank < ranks; ++rank) drawn.request.speeds.push_back(1 << dice.between(0, 2));
  for (int stage = 0; stage < num_stages; ++stage) {
    const int rank = turned && stage >= ranks ? num_stages - 1 - stage : stage % ranks;
    const double end = (stage == 0 ? embedding : 0) + (stage + 1 == num_stages ? head : 0);
    drawn.stages.push_back({rank, 2 * half / drawn.request.speeds[rank], end / drawn.request.speeds[rank]});
    drawn.request.holders.push_back({stage, rank, 1, 1});
  }
  drawn.request.units.push_back({.name = "embedding", .forward = embedding});
  drawn.request.units.insert(drawn.request.units.end(), 2 * drawn.num_blocks, Unit{.name = "half", .forward = half});
  drawn.request.units.push_back({.name = "head", .forward = head});
  return drawn;
}

TEST(EqualBlocks, SlowestRankIsThatOfTheExactSearch) {
  int num_best = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Case drawn = drawn_case(seed);
    const std::vector<double> blocks = cut_equal_blocks(drawn.stages, drawn.num_blocks);
    EXPECT_EQ(std::accumulate(blocks.begin(), blocks.end(), 0.0), drawn.num_blocks) << seed;
    std::vector<double> seconds(drawn.request.speeds.size());
    for (size_t i = 0; i < blocks.size(); ++i) {
      const BlockStage& stage = drawn.stages[i];
      EXPECT_GT(blocks[i] + stage.end_seconds, 0) << seed;
      seconds[stage.rank] += blocks[i] * stage.block_seconds + stage.end_seconds;
    }
    const Partition wanted = partition_units(drawn.request);
    const double slowest = std::ranges::max(seconds), best = std::ranges::max(wanted.rank_seconds);
    if (wanted.quality == Partition::Quality::Best) {
      EXPECT_DOUBLE_EQ(slowest, best) << seed;
    } else {
      EXPECT_LE(slowest, best * (1 + 1e-12)) << seed;
    }
    num_best += wanted.quality == Partition::Quality::Best ? 1 : 0;
  }
  EXPECT_GT(num_best, 80);
}

TEST(EqualBlocks, TheLastRanksHaveTheRemainderAndStagesOfARankAreAlike) {
  EXPECT_EQ(cut_equal_blocks({{0, 1}, {1, 1}, {2, 1}}, 4), (std::vector<double>{1, 1.5, 1.5}));
  EXPECT_EQ(cut_equal_blocks({{0, 1}, {1, 2}}, 6), (std::vector<double>{4, 2}));
  EXPECT_EQ(cut_equal_blocks({{0, 1}, {1, 1}, {0, 1}, {1, 1, 2}}, 7), (std::vector<double>{2.5, 2.5, 2, 0}));
}

}  // namespace
}  // namespace braid::plan::equal_blocks_test
