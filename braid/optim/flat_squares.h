// Sums of squares over a flat buffer, for host and device.
//
// Teams of threads compute them (a block on a device, or threads of the host in tests). A Team has rank(), size() and
// sum(values). sum(values) adds up each of a few values over the team's threads and gives every thread the totals.
#pragma once

#include <cstdint>

#include "braid/base/host_device.h"

namespace braid::optim {

inline constexpr int64_t kFlatBlock = 1024;  // elements

// Slice s consists of blocks first_block[s] .. first_block[s + 1] - 1.
template <class T>
struct FlatSquares {
  const T* values;
  int64_t num_blocks, num_slices;
  const int64_t* first_block;  // num_slices + 1 elements
  double* of_blocks;           // intermediate result: the sum of each block
  double* of_slices;
};

template <class T, class Team>
BRAID_HOST_DEVICE void team_square_block(const FlatSquares<T>& a, int64_t block, const Team& team) {
  double sum[1] = {0};
  for (int64_t j = team.rank(); j < kFlatBlock; j += team.size()) {
    const double value = static_cast<double>(a.values[block * kFlatBlock + j]);
    sum[0] += value * value;
  }
  team.sum(sum);
  if (team.rank() == 0) a.of_blocks[block] = sum[0];
}

template <class T, class Team>
BRAID_HOST_DEVICE void team_sum_slice(const FlatSquares<T>& a, int64_t slice, const Team& team) {
  double sum[1] = {0};
  for (int64_t b = a.first_block[slice] + team.rank(); b < a.first_block[slice + 1]; b += team.size()) {
    sum[0] += a.of_blocks[b];
  }
  team.sum(sum);
  if (team.rank() == 0) a.of_slices[slice] = sum[0];
}

}  // namespace braid::optim
