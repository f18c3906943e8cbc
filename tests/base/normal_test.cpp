// Normal numbers against the definition in long double, against themselves in batches, and by their moments.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "braid/base/seeds.h"

namespace braid::normal_test {
namespace {

// Box-Muller on the words of a block. The angle is reduced to an eighth of a turn, where long double is exact enough.
std::array<long double, 4> by_definition(uint64_t key, uint64_t block) {
  const auto w = stream_words(key, block);
  std::array<long double, 4> out;
  for (int pair = 0; pair < 2; ++pair) {
    const long double radius = std::sqrt(-2 * std::log((w[2 * pair] + 0.5L) * 0x1p-32L));
    const uint32_t quarter = (w[2 * pair + 1] + 0x20000000u) >> 30;
    const auto rest = static_cast<int32_t>(w[2 * pair + 1] - (quarter << 30));
    const long double x = rest * (2 * std::numbers::pi_v<long double> * 0x1p-32L);
    const long double cosine[] = {std::cos(x), -std::sin(x), -std::cos(x), std::sin(x)};
    const long double sine[] = {std::sin(x), std::cos(x), -std::sin(x), -std::cos(x)};
    out[2 * pair] = radius * cosine[quarter];
    out[2 * pair + 1] = radius * sine[quarter];
  }
  return out;
}

TEST(Normal, IsBoxMullerToAFewUnitsInTheLastPlace) {
  for (uint64_t block = 0; block < 20000; ++block) {
    const auto got = normal4(77, block);
    const auto want = by_definition(77, block);
    for (int i = 0; i < 4; ++i) {
      ASSERT_LE(std::abs(got[i] - want[i]), std::abs(want[i]) * 0x1p-49L) << "block " << block << ", number " << i;
    }
  }
}

TEST(Normal, BatchesHoldTheSameBits) {
  double batch[4 * kNormalBlocks];
  for (const uint64_t first : {uint64_t{0}, uint64_t{1000003}, (uint64_t{1} << 32) - 7}) {
    normal_blocks(9, first, batch);
    for (int block = 0; block < kNormalBlocks; ++block) {
      const auto four = normal4(9, first + block);
      for (int i = 0; i < 4; ++i) EXPECT_EQ(batch[4 * block + i], four[i]) << first << " + " << block;
    }
  }
}

// A run must start from the same weights tomorrow and elsewhere. The last bits are those of this arithmetic.
TEST(Normal, StaysAsItIs) {
  const auto four = normal4(0, 0);
  EXPECT_EQ(four[0], 0x1.fb7665dc7574ep-1);
  EXPECT_EQ(four[1], -0x1.d96d5ff1f1a45p-1);
}

TEST(Normal, HasTheMomentsOfTheStandardNormal) {
  constexpr int kBlocks = 50000;
  double sum = 0, squares = 0, fourth = 0, products = 0;
  for (int block = 0; block < kBlocks; ++block) {
    const auto x = normal4(5, block);
    for (const double v : x) {
      ASSERT_TRUE(std::isfinite(v));
      sum += v;
      squares += v * v;
      fourth += v * v * v * v;
    }
    products += x[0] * x[1] + x[2] * x[3] + x[0] * x[2];
  }
  const double count = 4.0 * kBlocks;
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.015);
  EXPECT_NEAR(fourth / count, 3, 0.1);
  EXPECT_NEAR(products / (3 * kBlocks), 0, 0.015);
}

}  // namespace
}  // namespace braid::normal_test
