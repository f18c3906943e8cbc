// The division of work among the blocks and threads of a device: plain arithmetic on the host. It depends on sizes
// only, so that sums have the same bits on every device.
#pragma once

#include <algorithm>
#include <cstdint>

namespace braid::device {

struct LaunchShape {
  int64_t blocks = 0;  // 0: nothing to launch
  int threads = 0;     // of a block; a multiple of kWarp, at most kMostTeamThreads
  int64_t parts = 1;   // of blocks, second dim of the grid
};

inline constexpr int kWarp = 32;
inline constexpr int kMostTeamThreads = 512;
inline constexpr int kFlatThreads = 256;
inline constexpr int64_t kMostBlocks = 1 << 16;  // kernels loop when there is more to do than blocks

// A thread to an item.
inline LaunchShape flat_shape(int64_t items) {
  return {std::min((items + kFlatThreads - 1) / kFlatThreads, kMostBlocks), kFlatThreads};
}

// A block to an item that has work for `wanted` threads: a power of two of them.
inline LaunchShape team_shape(int64_t items, int64_t wanted) {
  int threads = kWarp;
  while (threads < kMostTeamThreads && threads < wanted) threads *= 2;
  return {std::min(items, kMostBlocks), threads};
}

}  // namespace braid::device
