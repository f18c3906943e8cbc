// The sizes from which on a group takes the all-reduce of its transport (OwnAllReduce) in place of the messages of
// message_collectives.h.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::comm::transport {

struct OwnSumSizes {
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // Bytes that a rank receives from all others together, in a group of two ranks and in a larger one. Of two ranks, one
  // exchange of messages is a whole all-reduce, so the limits differ.
  int64_t of_two = kNever, of_more = kNever;

  // Returns true for tensors of `bytes` bytes on each of `num_ranks` ranks.
  bool include(int64_t bytes, int num_ranks) const {
    return bytes > 0 && num_ranks > 1 && bytes * (num_ranks - 1) >= (num_ranks == 2 ? of_two : of_more);
  }
};

// The duration of one all-reduce on the slowest rank, in seconds.
struct SumTimes {
  double messages = 0, own = 0;
};

// Returns true if the transport's own all-reduce is faster by more than the noise of such a measurement.
constexpr bool own_is_faster(const SumTimes& times) { return times.own < 0.9 * times.messages; }

// Measures all-reduces of float32 on `world`, and on pairs of its ranks, and writes the sizes from which on the
// transport's own is faster to `sizes`, which the groups of `world` read meanwhile. The sizes are equal on all ranks.
// Collective, blocks. Throws CommError if the world fails.
//
// It begins with 4 MiB and goes on to a smaller size as long as the transport's own is faster.
void measure_own_sums(Communicator& world, OwnSumSizes& sizes);

}  // namespace braid::comm::transport
