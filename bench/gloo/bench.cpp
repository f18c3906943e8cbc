// One of two ranks that time all_reduce (float32, sum) over Gloo: braid's world in both orders of sums, and Gloo alone,
// in turns. It finds its peer by files of a folder. Rank 0 prints the medians of each. It does not judge; README.md has
// the numbers.
//
//   bench_gloo FOLDER RANK ADDRESS
#include <ATen/ops/zeros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/comm/gloo/gloo_wire.h"
#include "braid/comm/gloo/make_gloo_world.h"
#include "tests/support/exit_on_failure.h"
#include "tests/support/folder_store.h"

namespace {

using braid::now_seconds;

constexpr int kRanks = 2;
constexpr const char* kHead =
    "| tensor | tree, us | engine, us | Gloo alone, us | tree / Gloo | engine / Gloo |\n|---|---|---|---|---|---|\n";

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Way {
  const char* name;
  std::function<void(const at::Tensor&)> reduce;
  std::vector<double> seconds = {};
};

// In turns of one round each, so that a slow moment of the machine hits all. A small reduction before each stands for a
// barrier; the first rounds are dropped.
void time_rounds(std::vector<Way>& ways, int64_t bytes) {
  const at::Tensor tensor = at::zeros({bytes / static_cast<int64_t>(sizeof(float))}, at::kFloat), one = at::zeros({1});
  const int rounds = static_cast<int>(std::clamp<int64_t>((int64_t{1} << 30) / bytes, 40, 1000));
  for (Way& way : ways) way.seconds.clear();
  for (int round = -3; round < rounds; ++round) {
    for (Way& way : ways) {
      way.reduce(one);
      const double begin = now_seconds();
      way.reduce(tensor);
      if (round >= 0) way.seconds.push_back(now_seconds() - begin);
    }
  }
}

std::vector<double> ratios(const Way& ours, const Way& theirs) {
  std::vector<double> each;
  for (size_t i = 0; i < ours.seconds.size(); ++i) each.push_back(ours.seconds[i] / theirs.seconds[i]);
  return each;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int rank = std::atoi(argv[2]);
  braid::FolderStore store(argv[1]);
  braid::ExitOnFailure failures;
  braid::HostQueue queue;
  const auto world = [&](const char* prefix, braid::comm::ReductionOrder sums) {
    return braid::comm::make_gloo_world({.self = {.rank = rank, .size = kRanks, .failures = &failures, .sums = sums},
                                         .store = &store,
                                         .prefix = prefix,
                                         .address = argv[3]},
                                        queue);
  };
  const auto tree = world("tree/", braid::comm::ReductionOrder::Tree),
             engine = world("engine/", braid::comm::ReductionOrder::Engine);
  braid::comm::gloo::GlooWire alone({.rank = rank,
                                     .size = kRanks,
                                     .listener = braid::comm::gloo::Listener::at(argv[3]),
                                     .store = &store,
                                     .prefix = "alone/"});
  const auto sum_on = [](braid::Communicator& on) {
    return [&on](const at::Tensor& tensor) { on.all_reduce(tensor, braid::ReduceOp::Sum).wait_host(); };
  };
  std::vector<Way> ways = {{"tree", sum_on(*tree)},
                           {"engine", sum_on(*engine)},
                           {"Gloo alone", [&](const at::Tensor& tensor) { alone.sum(tensor); }}};
  if (rank == 0) std::printf("%s", kHead);
  for (const int64_t bytes : {int64_t{8}, int64_t{64} << 10, int64_t{1} << 20, int64_t{25} << 20}) {
    time_rounds(ways, bytes);
    if (rank != 0) continue;
    std::printf("| %s | %.1f | %.1f | %.1f | %.2f | %.2f |\n", braid::human_bytes(static_cast<double>(bytes)).c_str(),
                median(ways[0].seconds) * 1e6, median(ways[1].seconds) * 1e6, median(ways[2].seconds) * 1e6,
                median(ratios(ways[0], ways[2])), median(ratios(ways[1], ways[2])));
    std::fflush(stdout);
  }
}
