// Measures the links between the ranks of a world: every pair by messages, all together by all-reduces. Hosts are
// numbers.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::train {

struct LinkSpeed {
  int first = 0, second = 0;    // ranks of the world; first < second
  double latency_seconds = 0;   // of 8 bytes, one way
  double bytes_per_second = 0;  // one way
};

struct SumSpeed {
  int ranks = 0, per_host = 0;  // that sum; of them on each host
  int64_t bytes = 0;            // of each rank's tensor
  double seconds = 0;
};

// Clocks of a rank's host beside those of rank 0's.
struct ClockDifference {
  int rank = 0;
  double wall_seconds = 0, monotonic_seconds = 0;  // ahead of rank 0's
  double within_seconds = 0;                       // how exact that is
};

// Returns the pairs to measure, in rounds: no two pairs of a round share a host. With up to 16 ranks these are all
// pairs; with more, one pair of ranks for each pair of hosts, and on each host each rank with the next.
std::vector<std::vector<LinkSpeed>> rounds_of_pairs(const std::vector<int>& host_of_rank);

// These are collective.
//
// One pair, while no other is measured, through memory of `device`. The same on all ranks.
LinkSpeed measured_pair(Communicator& world, LinkSpeed pair, at::Device device);
// The pairs of which this rank is the first: the best of messages there and back, during some hundredths of a second
// while no other pair of the two hosts is measured. Of 4 MiB, or 256 KiB where those take long.
std::vector<LinkSpeed> measured_links(Communicator& world, const std::vector<int>& host_of_rank);
// all_reduce() of float32, the mean of many: sizes from 8 bytes to 16 MiB, as long as one does not take long. Of groups
// of 2, 4, 8 .. neighbours in a host and of one rank of each host, all groups of a kind at the same time, and of all
// ranks, which come last. Where hosts have different numbers of ranks, of all ranks alone. The same on all ranks.
std::vector<SumSpeed> measured_sums(Communicator& world, const std::vector<int>& host_of_rank);
// Rank 0's; others return nothing. Of the first rank of each other host.
std::vector<ClockDifference> measured_clocks(Communicator& world, const std::vector<int>& host_of_rank);

}  // namespace braid::train
