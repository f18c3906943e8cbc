// One rank of a group on several hosts, over TCP. Rank 0 prints "COLLECTIVE MILLISECONDS", the median of the slowest
// rank for 32 MiB of float32, sums in tree order.
//
//   bench_two_levels FOLDER RANK RANKS RANKS_PER_NODE ADDRESS    ranks find each other by files of FOLDER
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "braid/base/clock.h"
#include "braid/launch/engines.h"
#include "braid/spec/rank_hosts.h"
#include "tests/support/exit_on_failure.h"
#include "tests/support/folder_store.h"

namespace {

using namespace braid;

constexpr int kRounds = 7;
constexpr int64_t kCount = 8 << 20;

double median_of_slowest(Communicator& world, const std::function<Work()>& collective) {
  std::vector<double> seconds;
  for (int round = -1; round < kRounds; ++round) {
    world.barrier().wait_host();
    const double begin = now_seconds();
    collective().wait_host();
    if (round >= 0) seconds.push_back(now_seconds() - begin);
  }
  world.all_reduce(at::from_blob(seconds.data(), {kRounds}, at::kDouble), ReduceOp::Max).wait_host();
  std::ranges::sort(seconds);
  return seconds[kRounds / 2];
}

void print_times(Communicator& world) {
  const at::Tensor whole = at::zeros({kCount}, at::kFloat), part = at::zeros({kCount / world.size()}, at::kFloat);
  const auto print = [&](const char* name, const std::function<Work()>& collective) {
    const double seconds = median_of_slowest(world, collective);
    if (world.rank() == 0) std::printf("%s %.1f\n", name, seconds * 1e3);
  };
  print("all_reduce", [&] { return world.all_reduce(whole, ReduceOp::Sum); });
  print("reduce_scatter", [&] { return world.reduce_scatter(part, whole, ReduceOp::Sum); });
  print("all_gather", [&] { return world.all_gather(whole, part); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int rank = std::atoi(argv[2]), size = std::atoi(argv[3]), ranks_per_node = std::atoi(argv[4]);
  FolderStore store(argv[1]);
  ExitOnFailure failures;
  HostQueue queue;
  const auto world = launch::make_world(
      CommEngine::Tcp,
      {.self = {.rank = rank,
                .size = size,
                .failures = &failures,
                .node_of_rank = spec::collective_nodes(std::vector<int>(static_cast<size_t>(size)), ranks_per_node)},
       .store = &store,
       .address = argv[5]},
      queue);
  print_times(*world);
}
