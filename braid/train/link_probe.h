// Measures the links between the ranks of a world: pairs of ranks by messages, groups of ranks by all-reduces. Hosts
// are numbered from 0.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::train {

struct LinkSpeed {
  int first = 0, second = 0;    // ranks of the world; first < second
  double latency_seconds = 0;   // of a message of 8 bytes, one way
  double bytes_per_second = 0;  // one way
};

struct SumSpeed {
  // Number of ranks in the all-reduce, and the number of these on each host. If hosts have different numbers of ranks,
  // per_host is `ranks`.
  int ranks = 0, per_host = 0;
  int64_t bytes = 0;  // size of each rank's tensor
  double seconds = 0;
};

// The clocks of a rank's host, compared with those of rank 0's host.
struct ClockDifference {
  int rank = 0;
  double wall_seconds = 0, monotonic_seconds = 0;  // ahead of rank 0's
  double within_seconds = 0;                       // largest error of both
};

// Returns the pairs to measure, in rounds. No two pairs of a round share a host. Up to 16 ranks form all pairs. With
// more ranks, there is one pair for each pair of hosts, and on each host one pair of each rank and the next.
std::vector<std::vector<LinkSpeed>> rounds_of_pairs(const std::vector<int>& host_of_rank);

// Measures one pair, while no other pair is measured, with tensors on `device`. Returns the same on all ranks.
// Collective.
LinkSpeed measured_pair(Communicator& world, LinkSpeed pair, at::Device device);
// Measures rounds_of_pairs(), and returns the pairs in which this rank is the first. Each value is that of the best of
// many round trips. A pair takes some hundredths of a second, while no other pair of its two hosts is measured.
// Bandwidth is that of messages of 4 MiB, or of 256 KiB if a round trip of these takes 10 ms or more. Collective.
std::vector<LinkSpeed> measured_links(Communicator& world, const std::vector<int>& host_of_rank);
// Measures all_reduce() of float32 tensors from 8 bytes to 16 MiB. The seconds are the mean of many. A size that takes
// more than 0.1 seconds is the last. Measures these groups, all groups of a kind at the same time:
//
//   2, 4, 8 .. neighbours in a host      if all hosts have the same number of ranks, and the size divides it
//   one rank of each host                if all hosts have the same number of ranks
//   all ranks                            always, as the last
//
// Returns the same on all ranks. Collective.
std::vector<SumSpeed> measured_sums(Communicator& world, const std::vector<int>& host_of_rank);
// Returns, on rank 0, the clock difference of the first rank of each other host; on other ranks an empty list.
// Collective.
std::vector<ClockDifference> measured_clocks(Communicator& world, const std::vector<int>& host_of_rank);

}  // namespace braid::train
