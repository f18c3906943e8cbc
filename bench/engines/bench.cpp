// Times all_reduce (float32, sum) of two ranks of this host over one engine. Prints "BYTES MICROSECONDS" for each size,
// the median of the slower rank. It does not judge; README.md has the numbers.
//
//   bench_engines threads|shm|gloo
//   bench_engines FOLDER             under mpirun: over MPI; ranks find each other by files of FOLDER
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "braid/base/clock.h"
#include "braid/launch/engines.h"
#include "braid/launch/launcher.h"
#include "tests/support/exit_on_failure.h"
#include "tests/support/folder_store.h"

namespace {

using braid::Communicator;
using braid::now_seconds;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double median_of_slower(Communicator& world, int64_t bytes) {
  const at::Tensor tensor = at::zeros({bytes / static_cast<int64_t>(sizeof(float))}, at::kFloat);
  const int rounds = static_cast<int>(std::clamp<int64_t>((int64_t{1} << 29) / bytes, 15, 2000));
  std::vector<double> seconds;
  for (int round = -3; round < rounds; ++round) {
    world.barrier().wait_host();
    const double begin = now_seconds();
    world.all_reduce(tensor, braid::ReduceOp::Sum).wait_host();
    if (round >= 0) seconds.push_back(now_seconds() - begin);
  }
  world
      .all_reduce(at::from_blob(seconds.data(), {static_cast<int64_t>(seconds.size())}, at::kDouble),
                  braid::ReduceOp::Max)
      .wait_host();
  return median(std::move(seconds));
}

void print_rows(Communicator& world) {
  for (const int64_t bytes : {8, 512, 4 << 10, 64 << 10, 512 << 10, 4 << 20, 25 << 20, 64 << 20}) {
    const double seconds = median_of_slower(world, bytes);
    if (world.rank() == 0) std::printf("%ld %.2f\n", static_cast<long>(bytes), seconds * 1e6);
    std::fflush(stdout);
  }
}

void print_rows_of_mpi(const char* folder) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (!rank) rank = std::getenv("PMI_RANK");
  if (!rank) std::exit(2);
  braid::FolderStore store(folder);
  braid::ExitOnFailure failures;
  braid::HostQueue queue;
  const auto world = braid::launch::make_world(
      braid::CommEngine::Mpi, {.self = {.rank = std::atoi(rank), .size = 2, .failures = &failures}, .store = &store},
      queue);
  print_rows(*world);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto engine = braid::value_of<braid::CommEngine>(argv[1]);
  if (!engine) {
    print_rows_of_mpi(argv[1]);
    return 0;
  }
  const bool threads = *engine == braid::CommEngine::Threads;
  braid::launcher({.ranks = threads ? braid::RanksAs::Threads : braid::RanksAs::Processes, .engine = *engine})
      .run(2,
           [](Communicator& world) {
             print_rows(world);
             return std::string();
           },
           {.threads_per_rank = 1});
}
