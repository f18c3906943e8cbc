// Counter-based random numbers: value number i of a stream is a pure function of (key, i), so any rank can make any
// part. Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC11), Philox 4x32 with 10 rounds.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "braid/base/host_device.h"

namespace braid {

// Standard normal numbers of a counter-based stream. The arithmetic gives the same numbers on every machine, and its
// loops vectorise. It does not use libm, whose logarithm and sine differ between versions.
//
// Box & Muller (1958): two uniform numbers u, v give sqrt(-2 log u) cos(2 pi v) and sqrt(-2 log u) sin(2 pi v).
//
// Returns numbers 4 * block .. 4 * block + 3 of the stream of `key`, exact to a few units in the last place of a
// double.
std::array<double, 4> normal4(uint64_t key, uint64_t block);

// Writes the numbers of kNormalBlocks blocks from `first_block` on to out[0 .. 4 * kNormalBlocks - 1]. They equal those
// of normal4(); this function is about ten times faster.
inline constexpr int kNormalBlocks = 64;
void normal_blocks(uint64_t key, uint64_t first_block, double* out);

// Philox 4x32 with 10 rounds, for host and device. Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3"
// (SC11).
struct PhiloxWords {
  uint32_t at[4];
};

BRAID_HOST_DEVICE inline PhiloxWords philox_words(PhiloxWords c, uint64_t key) {
  uint32_t low_key = static_cast<uint32_t>(key), high_key = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c.at[0], b = uint64_t{0xCD9E8D57} * c.at[2];
    c = {{static_cast<uint32_t>(b >> 32) ^ c.at[1] ^ low_key, static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ c.at[3] ^ high_key, static_cast<uint32_t>(a)}};
    low_key += 0x9E3779B9;
    high_key += 0xBB67AE85;
  }
  return c;
}

// Returns the result of ten rounds of Philox 4x32.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Returns the four random words of one block of a stream.
std::array<uint32_t, 4> stream_words(uint64_t key, uint64_t block);

// Returns the key of the stream called `name` under a run's seed. Different names give unrelated streams.
uint64_t stream_key(uint64_t seed, std::string_view name);

// Returns a well-mixed 64-bit function of (key, index).
uint64_t random_bits(uint64_t key, uint64_t index);

// Returns number `index` of the stream, uniform in [0, 1).
double uniform(uint64_t key, uint64_t index);

}  // namespace braid
