// Times the all-reduce of two thread ranks (or, told "processes", of two process ranks) against its bound: 4 bytes of
// traffic for each byte of tensor (both inputs read, both outputs written), at the memory speed that the same two
// threads reach in the same run. With a number of bytes it prints the median seconds of that size alone. It does not
// judge; README.md has the numbers.
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/launch/process_ranks.h"

namespace {

using braid::Communicator;
using braid::now_seconds;

constexpr int kRanks = 2;
constexpr int64_t kLanes = 16;

void pin_to_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

// a[i] and b[i] become a[i] + b[i]: the traffic of an all-reduce of two tensors, without the communicator.
void add_in_place(float* __restrict a, float* __restrict b, int64_t count) {
  for (int64_t i = 0; i + kLanes <= count; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      float sum = a[i + j] + b[i + j];
      a[i + j] = sum;
      b[i + j] = sum;
    }
  }
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Both threads leave at the same moment, which a barrier that sleeps does not give.
class SpinBarrier {
 public:
  void arrive_and_wait() {
    int turn = turn_.load();
    if (come_.fetch_add(1) + 1 == kRanks) {
      come_ = 0;
      turn_ = turn + 1;
    }
    while (turn_.load() == turn) {
    }
  }

 private:
  std::atomic<int> come_{0}, turn_{0};
};

// Runs `work` `rounds` times between barriers; the time of a round is the slower rank's. The first is
// dropped.
template <class Work>
void time_rounds(std::vector<double>& seconds, SpinBarrier& barrier, int rounds, const Work& work) {
  for (int round = 0; round <= rounds; ++round) {
    barrier.arrive_and_wait();
    double begin = now_seconds();
    work();
    double elapsed = now_seconds() - begin;
    if (round > 0) seconds.push_back(elapsed);
  }
}

double slower(const std::vector<double> (&seconds)[kRanks]) {
  std::vector<double> rounds;
  for (size_t i = 0; i < seconds[0].size(); ++i) rounds.push_back(std::max(seconds[0][i], seconds[1][i]));
  return median(rounds);
}

int rounds_of(int64_t bytes) { return static_cast<int>(std::clamp<int64_t>((int64_t{1} << 30) / bytes, 15, 2000)); }

struct Medians {
  double reduced, bound;  // seconds
};

Medians measured(int64_t bytes) {
  int64_t count = bytes / static_cast<int64_t>(sizeof(float));
  int rounds = rounds_of(bytes);
  std::vector<double> reduce[kRanks], probe[kRanks];
  at::Tensor tensors[kRanks];
  SpinBarrier barrier;
  braid::run_ranks(kRanks, [&](Communicator& world) {
    int rank = world.rank();
    pin_to_core(rank);
    tensors[rank] = at::zeros({count}, at::kFloat);  // touched first by its own rank
    barrier.arrive_and_wait();
    float* a = tensors[0].mutable_data_ptr<float>() + rank * (count / kRanks);
    float* b = tensors[1].mutable_data_ptr<float>() + rank * (count / kRanks);
    for (int repeat = 0; repeat < 3; ++repeat) {  // interleaved, so that a slow moment of the machine hits both
      time_rounds(probe[rank], barrier, rounds / 3, [&] { add_in_place(a, b, count / kRanks); });
      time_rounds(reduce[rank], barrier, rounds / 3,
                  [&] { world.all_reduce(tensors[rank], braid::ReduceOp::Sum).wait_host(); });
    }
  });
  return {slower(reduce), slower(probe)};
}

void print_row(int64_t bytes) {
  const auto [reduced, bound] = measured(bytes);
  std::printf("| %s | %.1f | %.1f | %.1f | %.0f %% |\n", braid::human_bytes(static_cast<double>(bytes)).c_str(),
              reduced * 1e6, bound * 1e6, 4e-9 * static_cast<double>(bytes) / reduced, 100 * bound / reduced);
  std::fflush(stdout);
}

// A process sees neither tensor of the other, so there is no bound in the same run.
void print_process_row(int64_t bytes) {
  braid::run_process_ranks(kRanks, [=](Communicator& world) {
    pin_to_core(world.rank());
    const at::Tensor tensor = at::zeros({bytes / static_cast<int64_t>(sizeof(float))}, at::kFloat);
    std::vector<double> seconds;
    for (int round = 0; round <= rounds_of(bytes); ++round) {
      world.barrier().wait_host();
      const double begin = now_seconds();
      world.all_reduce(tensor, braid::ReduceOp::Sum).wait_host();
      if (round > 0) seconds.push_back(now_seconds() - begin);
    }
    world
        .all_reduce(at::from_blob(seconds.data(), {static_cast<int64_t>(seconds.size())}, at::kDouble),
                    braid::ReduceOp::Max)
        .wait_host();
    if (world.rank() != 0) return;
    const double reduced = median(seconds);
    std::printf("| %s | %.1f | %.1f |\n", braid::human_bytes(static_cast<double>(bytes)).c_str(), reduced * 1e6,
                4e-9 * static_cast<double>(bytes) / reduced);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "processes") {
    std::printf("| processes | all-reduce, us | 4 bytes per byte, GB/s |\n|---|---|---|\n");
    for (int64_t bytes = 4 << 10; bytes <= 64 << 20; bytes *= 4) print_process_row(bytes);
    return 0;
  }
  if (argc == 3 && std::string_view(argv[1]) == "processes") {
    print_process_row(std::atoll(argv[2]));
    return 0;
  }
  if (argc == 2) {
    std::printf("%.9f\n", measured(std::atoll(argv[1])).reduced);
    return 0;
  }
  std::printf("| tensor | all-reduce, us | bound, us | traffic, GB/s | of the bound |\n|---|---|---|---|---|\n");
  for (int64_t bytes = 4 << 10; bytes <= 64 << 20; bytes *= 4) print_row(bytes);
  print_row(100'000'000);
}
