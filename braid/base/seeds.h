// Counter-based random numbers: value number i of a stream is a pure function of (key, i), so any rank can make any
// part. Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC11), Philox 4x32 with 10 rounds.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace braid {

// Ten rounds of Philox 4x32.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Four random words of a stream, the block's.
std::array<uint32_t, 4> stream_words(uint64_t key, uint64_t block);

// The key of the stream called `name` under a run's seed. Different names give unrelated streams.
uint64_t stream_key(uint64_t seed, std::string_view name);

// A well-mixed 64-bit function of (key, index).
uint64_t random_bits(uint64_t key, uint64_t index);

// Number `index` of the stream, uniform in [0, 1).
double uniform(uint64_t key, uint64_t index);

}  // namespace braid
