// The division of work among the blocks and threads of a device, computed on the host. It depends on sizes only, so
// that sums have the same bits on every device.
#pragma once

#include <algorithm>
#include <cstdint>

namespace braid::device {

struct LaunchShape {
  int64_t blocks = 0;  // number of blocks; 0: nothing to launch
  int threads = 0;     // threads per block; a multiple of kWarp, at most kMostTeamThreads
  int64_t parts = 1;   // number of parts, the second dim of the grid
};

inline constexpr int kWarp = 32;
inline constexpr int kMostTeamThreads = 512;
inline constexpr int kFlatThreads = 256;
inline constexpr int64_t kMostBlocks = 1 << 16;  // if there is more work than blocks, kernels loop

// Returns a shape with one thread per item, but at most kMostBlocks blocks.
inline LaunchShape flat_shape(int64_t items) {
  return {std::min((items + kFlatThreads - 1) / kFlatThreads, kMostBlocks), kFlatThreads};
}

// Returns a shape with one block per item, but at most kMostBlocks. A block has a power of two of threads: at least
// `wanted`, or kMostTeamThreads if that is less.
inline LaunchShape team_shape(int64_t items, int64_t wanted) {
  int threads = kWarp;
  while (threads < kMostTeamThreads && threads < wanted) threads *= 2;
  return {std::min(items, kMostBlocks), threads};
}

}  // namespace braid::device
