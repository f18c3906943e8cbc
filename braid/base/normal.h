// Standard normal numbers of a counter-based stream, by arithmetic that is the same on every machine: no libm, whose
// logarithm and sine differ between versions, and loops that vectorise.
//
// Box & Muller (1958): of two uniform u, v come sqrt(-2 log u) cos(2 pi v) and sqrt(-2 log u) sin(2 pi v).
#pragma once

#include <array>
#include <cstdint>

namespace braid {

// Numbers 4 * block .. 4 * block + 3 of the stream of `key`, exact to a few units in the last place of a double.
std::array<double, 4> normal4(uint64_t key, uint64_t block);

// The numbers of kNormalBlocks blocks from `first_block` on, to out[0 .. 4 * kNormalBlocks - 1]: those of normal4, some
// ten times faster.
inline constexpr int kNormalBlocks = 64;
void normal_blocks(uint64_t key, uint64_t first_block, double* out);

}  // namespace braid
