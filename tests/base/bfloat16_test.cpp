// Rounding to bfloat16: nearest, ties to even, NaN kept, against the definition on every kind of bit pattern.
#include "braid/base/bfloat16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "braid/base/seeds.h"

namespace braid::bfloat16_test {
namespace {

float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }
uint16_t bits_of(Bf16 value) { return static_cast<uint16_t>(value); }

TEST(Bfloat16, EveryValueIsItsOwnRounding) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = widen(static_cast<Bf16>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(widen(narrow(value)))) << bits;
    } else {
      EXPECT_EQ(bits_of(narrow(value)), bits);
    }
  }
}

TEST(Bfloat16, TiesGoToEven) {
  EXPECT_EQ(bits_of(narrow(from_bits(0x3f808000))), 0x3f80);
  EXPECT_EQ(bits_of(narrow(from_bits(0x3f818000))), 0x3f82);
  EXPECT_EQ(bits_of(narrow(from_bits(0x3f808001))), 0x3f81);
  EXPECT_EQ(bits_of(narrow(from_bits(0xbf818000))), 0xbf82);
  EXPECT_EQ(bits_of(narrow(std::numeric_limits<float>::max())), 0x7f80) << "beyond the largest: infinity";
}

TEST(Bfloat16, NaNWithOnlyLowBitsStaysNaN) { EXPECT_TRUE(std::isnan(widen(narrow(from_bits(0x7f800001))))); }

TEST(Bfloat16, NearestOfRandomNumbers) {
  for (uint64_t i = 0; i < 20000; ++i) {
    const float value = from_bits(static_cast<uint32_t>(random_bits(1, i)));
    if (!std::isfinite(value) || std::abs(value) > 3e38f) continue;
    const uint32_t low = std::bit_cast<uint32_t>(value) >> 16;
    const double below = widen(static_cast<Bf16>(low)), above = widen(static_cast<Bf16>(low + 1));
    const double rounded = widen(narrow(value));
    EXPECT_LE(std::abs(rounded - value), std::min(std::abs(below - value), std::abs(above - value))) << value;
  }
}

TEST(Bfloat16, EveryValueIsItsOwnStochasticRounding) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = widen(static_cast<Bf16>(bits));
    for (const uint32_t random : {0u, 1u, 0x8000u, 0xffffu}) {
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(widen(narrow_randomly(value, random)))) << bits;
      } else {
        EXPECT_EQ(bits_of(narrow_randomly(value, random)), bits);
      }
    }
  }
  EXPECT_TRUE(std::isnan(widen(narrow_randomly(from_bits(0x7fffffff), 0xffff)))) << "no carry into the sign";
  EXPECT_TRUE(std::isnan(widen(narrow_randomly(from_bits(0x7f800001), 0))));
}

// The number that the lower bits form counts the random numbers, of 65536, that round up: the mean is the value.
TEST(Bfloat16, StochasticRoundingHasTheValueAsItsMean) {
  for (const uint32_t bits : {0x3f800001u, 0x3f804000u, 0xbf80ffffu, 0x3fff8000u, 0x00001234u, 0x80000001u}) {
    uint32_t ups = 0;
    for (uint32_t random = 0; random < 65536; ++random) {
      const uint32_t rounded = bits_of(narrow_randomly(from_bits(bits), random));
      ASSERT_TRUE(rounded == bits >> 16 || rounded == (bits >> 16) + 1) << random;
      ups += rounded - (bits >> 16);
    }
    EXPECT_EQ(ups, bits & 0xffff);
  }
}

}  // namespace
}  // namespace braid::bfloat16_test
