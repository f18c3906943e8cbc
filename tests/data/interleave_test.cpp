// Shares of a blend: exact over a round, even within it, numbered without a gap.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/data/sampler.h"

namespace braid::data::interleave_test {
namespace {

std::vector<double> random_weights(uint64_t seed) {
  std::vector<double> weights(1 + random_bits(seed, 0) % 12);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::exp(8 * uniform(seed, i + 1));
  return weights;
}

TEST(Interleave, SharesAreExactToOneTurnOfTheRound) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto weights = random_weights(seed);
    const Interleave interleave(weights);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    int all = 0;
    for (size_t p = 0; p < weights.size(); ++p) {
      const int turns = interleave.turns(static_cast<int>(p));
      EXPECT_NEAR(turns, weights[p] / sum * Interleave::kRound, 1) << seed;
      all += turns;
    }
    EXPECT_EQ(all, Interleave::kRound);
  }
}

TEST(Interleave, NoPartIsAWholeTurnAheadAndNumbersHaveNoGap) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto weights = random_weights(seed);
    const Interleave interleave(weights);
    std::vector<int64_t> taken(weights.size(), 0);
    for (int64_t i = 0; i < 2 * Interleave::kRound + 100; ++i) {
      const auto [part, number] = interleave.turn(i);
      ASSERT_EQ(number, taken[static_cast<size_t>(part)]++) << seed << " " << i;
      const double share = static_cast<double>(interleave.turns(part)) / Interleave::kRound;
      ASSERT_LT(static_cast<double>(number + 1) - share * static_cast<double>(i + 1), 1) << seed << " " << i;
    }
  }
}

TEST(Interleave, OnePartTakesEveryTurn) {
  const Interleave interleave({0.3});
  for (const int64_t index : {int64_t{0}, int64_t{8191}, int64_t{8192}, int64_t{1} << 50}) {
    EXPECT_EQ(interleave.turn(index).part, 0);
    EXPECT_EQ(interleave.turn(index).number, index);
  }
}

TEST(Interleave, TheSmallestShareStillHasATurn) {
  const Interleave interleave({1, 1e9, 1e9});
  EXPECT_EQ(interleave.turns(0), 1);
  EXPECT_EQ(interleave.turns(1) + interleave.turns(2), Interleave::kRound - 1);
  EXPECT_THROW(Interleave({1, 0}), InternalError);
  EXPECT_THROW(Interleave({1, NAN}), InternalError);
  EXPECT_THROW(Interleave(std::vector<double>{}), InternalError);
}

}  // namespace
}  // namespace braid::data::interleave_test
