// bfloat16 stored as bits: the upper half of a float32. Conversions use integer arithmetic, which lets loops over
// arrays vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace braid {

enum class Bf16 : uint16_t {};  // an enum instead of a struct: copies of structs do not vectorise

inline float widen(Bf16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

// Rounds to nearest, ties to even. A NaN stays a NaN. It is detected from its bits: a comparison of floats among
// integer operations does not vectorise.
inline Bf16 narrow(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t is_nan = static_cast<uint32_t>(static_cast<int32_t>(0x7f800000u - (bits & 0x7fffffffu)) >> 31);
  return static_cast<Bf16>((rounded & ~is_nan) | (0x7fc0u & is_nan));
}

// Rounds stochastically, with `random` uniform in 0 .. 65535: up in magnitude if the sum of `random` and the lower 16
// bits carries, hence with exactly the probability that makes the mean of the result the value. A value of the format
// stays as it is, and so does a NaN.
inline Bf16 narrow_randomly(float value, uint32_t random) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + random) >> 16;
  const uint32_t is_nan = static_cast<uint32_t>(static_cast<int32_t>(0x7f800000u - (bits & 0x7fffffffu)) >> 31);
  return static_cast<Bf16>((rounded & ~is_nan) | (0x7fc0u & is_nan));
}

}  // namespace braid
