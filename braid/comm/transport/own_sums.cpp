// The measurement at the start of a world.
#include "braid/comm/transport/own_sums.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "braid/base/clock.h"
#include "braid/comm/agree.h"

namespace braid::comm::transport {
namespace {

constexpr int64_t kMeasuredBytes[] = {4 << 20, 1 << 20, 256 << 10, 64 << 10, 16 << 10};  // received by a rank
constexpr int kRounds = 3;
constexpr double kEndless = std::numeric_limits<double>::infinity();

double seconds_of_sum(Communicator& group, const at::Tensor& tensor) {
  const double begin = now_seconds();
  group.all_reduce(tensor, ReduceOp::Sum).wait_host();
  return now_seconds() - begin;
}

// Measures sums of which each rank of `group` receives `bytes` bytes. The first round, which makes connections and
// touches memory, does not count. Other programs on the host only add to a time, so the shortest one counts. `limit` is
// the one that `group` reads.
SumTimes times_of(Communicator& group, int64_t bytes, int64_t& limit) {
  const int64_t elements = bytes / static_cast<int64_t>(sizeof(float)) / std::max(1, group.size() - 1);
  const at::Tensor tensor = at::zeros({std::max<int64_t>(elements, 1)}, at::kFloat);
  SumTimes shortest{kEndless, kEndless};
  for (int round = 0; round <= kRounds; ++round) {
    limit = OwnSumSizes::kNever;
    const double by_messages = seconds_of_sum(group, tensor);
    limit = 0;
    const double by_own = seconds_of_sum(group, tensor);
    if (round > 0) shortest = {std::min(shortest.messages, by_messages), std::min(shortest.own, by_own)};
  }
  limit = OwnSumSizes::kNever;
  return shortest;
}

// `group` is a part of `world`, all of which agrees.
void measure(Communicator& group, Communicator& world, int64_t& limit) {
  int64_t faster_from = OwnSumSizes::kNever;
  for (const int64_t bytes : kMeasuredBytes) {
    const SumTimes mine = times_of(group, bytes, limit);
    const auto all = agree(world, "times of all-reduces", std::vector<double>{mine.messages, mine.own}, ReduceOp::Max);
    if (!own_is_faster({all[0], all[1]})) break;
    faster_from = bytes;
  }
  limit = faster_from;
}

}  // namespace

// Pairs that are far apart in the world are on different hosts, as the ranks of the data axis are.
void measure_own_sums(Communicator& world, OwnSumSizes& sizes) {
  if (world.size() == 2) return measure(world, world, sizes.of_two);
  const int half = world.size() / 2, rank = world.rank();
  measure(*world.split(rank < 2 * half ? rank % half : half, rank, "pair"), world, sizes.of_two);
  measure(world, world, sizes.of_more);
}

}  // namespace braid::comm::transport
