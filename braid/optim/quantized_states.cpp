// The nearest value is found in two steps. The leading bits of the quotient of an element and its scale are an index
// into a table of how many midpoints between neighbouring values lie below; at most one more is to be compared.
#include "braid/optim/quantized_states.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace braid::optim {
namespace {

constexpr int kDecades = 7;
constexpr int kCodes = 256;
// Buckets of quotients: 2^kBucketBits in each power of two from 2^-23 to 1. Those of a bucket differ by less than
// neighbouring values do.
constexpr int kBucketBits = 7;
constexpr int kShift = 23 - kBucketBits;
constexpr int32_t kFirstBucket = (127 - 23) << kBucketBits;
constexpr int kBuckets = (23 << kBucketBits) + 1;

// Magnitudes in ascending order, and what is needed to find the nearest one.
struct Magnitudes {
  int count = 0;
  std::array<float, kCodes> values{};
  std::array<float, kCodes> above{};      // midpoint between a value and the next; infinite for the last
  std::array<int32_t, kBuckets> below{};  // midpoints below a bucket
};

// Returns 0, the centres of the parts of each decade, of which the first has `parts`, and 1.
constexpr Magnitudes magnitudes(int parts) {
  constexpr double kDecadeBegin[kDecades] = {1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1};
  Magnitudes all;
  double before = 0;
  const auto add = [&](double value) {
    if (all.count > 0) all.above[all.count - 1] = static_cast<float>((before + value) / 2);
    all.values[all.count++] = static_cast<float>(value);
    before = value;
  };
  add(0);
  for (const double begin : kDecadeBegin) {
    for (int part = 0; part < parts; ++part) add(begin * (1 + 9 * (part + 0.5) / parts));
    parts *= 2;
  }
  add(1);
  all.above[all.count - 1] = std::numeric_limits<float>::infinity();
  int below = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    const float least = std::bit_cast<float>((kFirstBucket + bucket) << kShift);
    while (all.above[below] < least) ++below;
    all.below[bucket] = below;
  }
  return all;
}

// A signed code is the index of a magnitude below 1, and 128 more if the value is negative. "Minus 0" is 1. A
// non-negative code is the index of a magnitude.
constexpr Magnitudes kSigned = magnitudes(1), kNonNegative = magnitudes(2);
constexpr int kOne = 128;
static_assert(kSigned.count == kOne + 1 && kNonNegative.count == kCodes);

constexpr std::array<float, kCodes> values_of_signed_codes() {
  std::array<float, kCodes> values{};
  for (int code = 0; code < kCodes; ++code) {
    values[code] = code <= kOne ? kSigned.values[code] : -kSigned.values[code - kOne];
  }
  return values;
}
constexpr std::array<float, kCodes> kSignedValues = values_of_signed_codes();

const std::array<float, kCodes>& code_values(StateSign sign) {
  return sign == StateSign::Any ? kSignedValues : kNonNegative.values;
}

uint32_t magnitude_bits(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; }

// Returns the largest magnitude; NaN if there is one, whose bits are larger than those of any number.
float largest_magnitude(const float* __restrict__ from) {
  uint32_t largest = 0;
  for (int i = 0; i < kStateBlock; ++i) largest = std::max(largest, magnitude_bits(from[i]));
  return std::bit_cast<float>(largest);
}

// Sets `indices` to those of the magnitudes next to the quotients of a block, which are at most 1 or NaNs. The loops
// vectorise.
void find_nearest(const Magnitudes& all, const float* __restrict__ quotients, int32_t* __restrict__ indices) {
  for (int i = 0; i < kStateBlock; ++i) {
    const int32_t bucket = (std::bit_cast<int32_t>(quotients[i]) >> kShift) - kFirstBucket;
    indices[i] = all.below[std::clamp(bucket, 0, kBuckets - 1)];
  }
  for (int i = 0; i < kStateBlock; ++i) indices[i] += quotients[i] > all.above[indices[i]] ? 1 : 0;
}

void quantize_block(const float* __restrict__ from, float scale, StateSign sign, uint8_t* __restrict__ codes) {
  float quotients[kStateBlock];
  int32_t indices[kStateBlock];
  for (int i = 0; i < kStateBlock; ++i) quotients[i] = std::abs(from[i]) / scale;
  if (sign == StateSign::NonNegative) {
    find_nearest(kNonNegative, quotients, indices);
    for (int i = 0; i < kStateBlock; ++i) codes[i] = static_cast<uint8_t>(std::max(indices[i], from[i] > 0 ? 1 : 0));
    return;
  }
  find_nearest(kSigned, quotients, indices);
  for (int i = 0; i < kStateBlock; ++i) {
    const int32_t index = indices[i], negated = index > 0 ? kOne + std::min(index, kOne - 1) : 0;
    codes[i] = static_cast<uint8_t>(from[i] < 0 ? negated : index);
  }
}

}  // namespace

float code_value(uint8_t code, StateSign sign) { return code_values(sign)[code]; }

void quantize(const float* from, int64_t count, StateSign sign, uint8_t* codes, float* scales) {
  for (int64_t at = 0; at < count; at += kStateBlock) {
    const float scale = scales[at / kStateBlock] = largest_magnitude(from + at);
    if (scale == 0) {
      std::fill_n(codes + at, kStateBlock, uint8_t{0});
    } else {
      quantize_block(from + at, scale, sign, codes + at);
    }
  }
}

void dequantize(const uint8_t* __restrict__ codes, const float* __restrict__ scales, int64_t count, StateSign sign,
                float* __restrict__ to) {
  const float* const values = code_values(sign).data();
  for (int64_t at = 0; at < count; at += kStateBlock) {
    const float scale = scales[at / kStateBlock];
    for (int64_t i = at; i < at + kStateBlock; ++i) to[i] = values[codes[i]] * scale;
  }
}

}  // namespace braid::optim
