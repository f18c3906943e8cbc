// Philox against published vectors, and the shape of what is drawn from it.
#include "braid/base/seeds.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace braid::seeds_test {
namespace {

using Counter = std::array<uint32_t, 4>;

// The known answers of Random123 (kat_vectors, philox4x32 10): zeros, ones, and the digits of pi.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(StreamKey, DependsOnSeedAndEveryLetter) {
  std::set<uint64_t> keys;
  const std::vector<std::string> names = {"",
                                          "a",
                                          "b",
                                          "ab",
                                          "ba",
                                          "aa",
                                          "wte.weight",
                                          "wpe.weight",
                                          "blocks.0.ln_1",
                                          "blocks.1.ln_1",
                                          std::string(1, '\0'),
                                          std::string(2, '\0'),
                                          "\xff"};
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{2}, ~uint64_t{0}}) {
    for (const auto& name : names) EXPECT_TRUE(keys.insert(stream_key(seed, name)).second) << seed << " " << name;
  }
}

// The numbers drawn are part of the format: a run must be the same tomorrow.
TEST(Streams, StayAsTheyAre) {
  EXPECT_EQ(random_bits(0, 0), 0x6627e8d5e169c58d);
  const uint64_t key = stream_key(1, "wte.weight");
  EXPECT_EQ(key, stream_key(1, "wte.weight"));
  EXPECT_EQ(uniform(0, 0), static_cast<double>(0x6627e8d5e169c58d >> 11) * 0x1p-53);
}

TEST(RandomBits, UseTheWholeIndex) {
  std::set<uint64_t> seen;
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_TRUE(seen.insert(random_bits(7, uint64_t{1} << bit)).second) << bit;
    EXPECT_TRUE(seen.insert(random_bits(uint64_t{1} << bit, 7)).second) << bit;
  }
}

// Flipping one bit of the index flips half of the output: 32 of 64, give or take.
TEST(RandomBits, Mix) {
  int flipped = 0, tries = 0;
  for (uint64_t index = 0; index < 200; ++index) {
    for (int bit = 0; bit < 64; bit += 7, ++tries) {
      flipped += std::popcount(random_bits(3, index) ^ random_bits(3, index ^ uint64_t{1} << bit));
    }
  }
  EXPECT_NEAR(static_cast<double>(flipped) / tries, 32, 0.5);
}

TEST(Uniform, FillsTheUnitInterval) {
  constexpr int kCount = 100000;
  double sum = 0, squares = 0;
  std::vector<int> bins(10);
  for (int i = 0; i < kCount; ++i) {
    const double u = uniform(11, i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
    ++bins[static_cast<int>(u * 10)];
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.005);
  for (const int count : bins) EXPECT_NEAR(count, kCount / 10, 500);
}

}  // namespace
}  // namespace braid::seeds_test
