// The Philox generator and the numbers drawn from it.
#include "braid/base/seeds.h"

#include <bit>
#include <cmath>

namespace braid {
namespace {

// Returns c0 + c1 z + c2 z^2 + .., without a loop, so that loops around it vectorise.
inline double polynomial(double, double last) { return last; }
template <class... Rest>
inline double polynomial(double z, double first, Rest... rest) {
  return polynomial(z, rest...) * z + first;
}

// Returns -2 log((w + 1/2) / 2^32). With the number as 2^e m, m in [sqrt(1/2), sqrt(2)), and s = (m - 1) / (m + 1):
// log m = 2 (s + s^3/3 + s^5/5 + ..), of which eleven terms reach 2^-56 since |s| < 0.172.
inline double squared_radius(uint32_t w) {
  constexpr double kTwo52 = 0x1p52, kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd, kOne = 0x3ff0000000000000, kMantissa = 0x000fffffffffffff;
  const double value = (std::bit_cast<double>(uint64_t{w} | 0x4330000000000000) - kTwo52) + 0.5;  // exact
  const uint64_t bits = std::bit_cast<uint64_t>(value) + (kOne - kRootHalf);
  const uint64_t biased = bits >> 52;
  const double m = std::bit_cast<double>((bits & kMantissa) + kRootHalf);
  const double e = std::bit_cast<double>(biased | 0x4330000000000000) - (kTwo52 + 1023 + 32);
  const double s = (m - 1) / (m + 1), z = s * s;
  const double series =
      polynomial(z, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21);
  const double log_m = 2 * s + 2 * s * (z * series);
  return -2 * (e * kLn2High + (e * kLn2Low + log_m));
}

// Cosine and sine of 2 pi w / 2^32, from a number of quarter turns and a rest x of at most an eighth turn,
// |x| <= pi / 4.
struct Direction {
  double cosine, sine;
};
inline Direction direction(uint32_t w) {
  const uint32_t quarter = (w + 0x20000000u) >> 30;
  const double x = static_cast<double>(static_cast<int32_t>(w - (quarter << 30))) * 0x1.921fb54442d18p-30;
  const double z = x * x;
  // Taylor's series to x^15 and x^14: the next terms are below 2^-56 of the sum.
  const double odd = polynomial(z, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800,
                                -1.0 / 1307674368000);
  const double even =
      polynomial(z, -0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200);
  const double sine = x + x * (z * odd), cosine = 1 + z * even;
  const double a = quarter & 1 ? sine : cosine, b = quarter & 1 ? cosine : sine;
  return {(quarter + 1) & 2 ? -a : a, quarter & 2 ? -b : b};
}

}  // namespace

std::array<double, 4> normal4(uint64_t key, uint64_t block) {
  const auto w = stream_words(key, block);
  std::array<double, 4> out;
  for (int pair = 0; pair < 2; ++pair) {
    const double radius = std::sqrt(squared_radius(w[2 * pair]));
    const Direction at = direction(w[2 * pair + 1]);
    out[2 * pair] = radius * at.cosine;
    out[2 * pair + 1] = radius * at.sine;
  }
  return out;
}

void normal_blocks(uint64_t key, uint64_t first_block, double* out) {
  constexpr int kPairs = 2 * kNormalBlocks;
  uint32_t radius_words[kPairs], angle_words[kPairs];
  for (int i = 0; i < kNormalBlocks; ++i) {
    const auto w = stream_words(key, first_block + static_cast<uint64_t>(i));
    radius_words[2 * i] = w[0], angle_words[2 * i] = w[1];
    radius_words[2 * i + 1] = w[2], angle_words[2 * i + 1] = w[3];
  }
  double radius[kPairs], cosine[kPairs], sine[kPairs];
  for (int i = 0; i < kPairs; ++i) radius[i] = squared_radius(radius_words[i]);
  for (int i = 0; i < kPairs; ++i) radius[i] = std::sqrt(radius[i]);
  for (int i = 0; i < kPairs; ++i) {
    const Direction at = direction(angle_words[i]);
    cosine[i] = at.cosine, sine[i] = at.sine;
  }
  for (int i = 0; i < kPairs; ++i) {
    out[2 * i] = radius[i] * cosine[i];
    out[2 * i + 1] = radius[i] * sine[i];
  }
}

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  const PhiloxWords w = philox_words({{c[0], c[1], c[2], c[3]}}, uint64_t{key[1]} << 32 | key[0]);
  return {w.at[0], w.at[1], w.at[2], w.at[3]};
}

std::array<uint32_t, 4> stream_words(uint64_t key, uint64_t block) {
  const auto low = [](uint64_t v) { return static_cast<uint32_t>(v); };
  const auto high = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  return philox({low(block), high(block), 0, 0}, {low(key), high(key)});
}

uint64_t stream_key(uint64_t seed, std::string_view name) {
  uint64_t key = seed;
  for (const char c : name) key = random_bits(key, static_cast<unsigned char>(c));
  return random_bits(key, 0x100 + name.size());
}

uint64_t random_bits(uint64_t key, uint64_t index) {
  const auto w = stream_words(key, index);
  return uint64_t{w[0]} << 32 | w[1];
}

double uniform(uint64_t key, uint64_t index) { return static_cast<double>(random_bits(key, index) >> 11) * 0x1p-53; }

}  // namespace braid
