// The division of sums over rows into parts, for host and device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "braid/base/host_device.h"
#include "braid/device/launch_shape.h"
#include "braid/nn/kernels/rows.h"

namespace braid::kernels {

// Limits for dividing sums over rows into parts, and columns among threads. The division depends on sizes only
// (device/launch_shape.h).
inline constexpr int kColumnThreads = 128;
inline constexpr int64_t kMostParts = 512;
inline constexpr int64_t kFewestRows = 16;      // fewest rows of a part
inline constexpr int64_t kEnoughBlocks = 1024;  // number of blocks that fills any device
// The most shared memory of a block, in bytes. Devices of compute capability 8.0 offer up to 163 KiB.
inline constexpr int64_t kMostSharedBytes = 96 << 10;

// A division of rows into parts of equal extent; the last part may be shorter.
struct RowParts {
  int64_t rows = 0, num = 1, extent = 0;

  BRAID_HOST_DEVICE RowRange part(int64_t i) const {
    const int64_t begin = i * extent, end = begin + extent;
    return {begin < rows ? begin : rows, end < rows ? end : rows};
  }
};

// Returns the parts for sums over rows if each part has work for `blocks` blocks. There is at least one part.
inline RowParts row_parts(int64_t rows, int64_t blocks) {
  const int64_t wanted = std::max<int64_t>(1, kEnoughBlocks / std::max<int64_t>(1, blocks));
  const int64_t most = std::clamp<int64_t>((rows + kFewestRows - 1) / kFewestRows, 1, kMostParts);
  const int64_t extent = std::max<int64_t>(1, (rows + std::min(wanted, most) - 1) / std::min(wanted, most));
  return {rows, std::max<int64_t>(1, (rows + extent - 1) / extent), extent};
}

// Returns the launch shape with one thread for each column of packs in each part of the rows.
inline device::LaunchShape column_shape(int64_t packs, int64_t parts) {
  return {(packs + kColumnThreads - 1) / kColumnThreads, kColumnThreads, parts};
}

// Returns the parts for sums over the rows of a matrix of `width` columns.
inline RowParts column_parts(int64_t rows, int64_t width) { return row_parts(rows, column_shape(width / 4, 1).blocks); }

}  // namespace braid::kernels
