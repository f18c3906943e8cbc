// One side of the comparison in README.md: trains GPT-2 124M on random tokens, a step for each line "step" on standard
// input, and prints how long it took. "bound" times what no step can do without. It does not judge.
#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/support/commands.h"
#include "bench/support/training_steps.h"
#include "braid/base/clock.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/layout/parameters.h"
#include "braid/mesh/device_mesh.h"
#include "braid/model/shape.h"
#include "braid/nn/model.h"
#include "braid/param/memory_account.h"
#include "braid/train/trainer.h"

namespace {

using braid::now_seconds;

struct Arguments {
  std::string dtype;
  int context = 64, batch = 4, data = 1, tensor = 1, threads = 2;
  std::string reduction = "fast";
  std::string disk = "-";  // folder of optimizer states; "-": they are in memory
  double clip_norm = 0;

  int ranks() const { return data * tensor; }
};

Arguments arguments(int argc, char** argv) {
  if (argc < 7 || argc > 10) {
    std::fprintf(stderr,
                 "usage: bench_train_step DTYPE CONTEXT BATCH DATA_RANKS TENSOR_RANKS THREADS_PER_RANK [REDUCTION "
                 "[DISK_FOLDER|- [CLIP_NORM]]]\n");
    std::exit(2);
  }
  return {argv[1],
          std::atoi(argv[2]),
          std::atoi(argv[3]),
          std::atoi(argv[4]),
          std::atoi(argv[5]),
          std::atoi(argv[6]),
          argc > 7 ? argv[7] : "fast",
          argc > 8 ? argv[8] : "-",
          argc > 9 ? std::atof(argv[9]) : braid::OptimizerSpec().clip_norm};
}

braid::RunSpec spec_of(const Arguments& given) {
  braid::RunSpec spec;
  spec.model = {.layers = 12, .heads = 12, .width = 768, .context = given.context, .vocab = 50257};
  spec.mesh.data = given.data;
  spec.mesh.tensor = given.tensor;
  spec.optimizer.lr = 1e-4;
  spec.optimizer.clip_norm = given.clip_norm;
  if (given.disk != "-") {
    spec.memory.optimizer = braid::Tier::Disk;
    spec.memory.paths = {given.disk};
  }
  spec.train.steps = 1000000;
  spec.train.batch = given.batch;
  spec.train.microbatch = given.batch / given.data;
  spec.train.dtype = braid::value_of<braid::DType>(given.dtype).value();
  spec.train.threads = given.threads;
  spec.train.reduction = braid::value_of<braid::Reduction>(given.reduction).value();
  return spec;
}

template <class Work>
double median_seconds(int rounds, const Work& work) {
  std::vector<double> seconds;
  for (int round = 0; round <= rounds; ++round) {
    const double begin = now_seconds();
    work();
    if (round > 0) seconds.push_back(now_seconds() - begin);
  }
  return bench::median(seconds);
}

// The products of a step by LibTorch, one after another: of each weight y = x W^T, dX = dY W, dW = dY^T x.
double product_seconds(const braid::RunSpec& spec, int64_t rows) {
  const auto type = braid::train::scalar_type(spec.train.dtype);
  struct Product {
    at::Tensor x, weight, dy, y, dx, dweight;
  };
  std::vector<Product> products;
  const auto add = [&](int64_t out, int64_t in) {
    const auto make = [&](int64_t a, int64_t b) { return at::randn({a, b}).to(type); };
    products.push_back(
        {make(rows, in), make(out, in), make(rows, out), make(rows, out), make(rows, in), make(out, in)});
  };
  const int64_t c = spec.model.width;
  for (int layer = 0; layer < spec.model.layers; ++layer) add(3 * c, c), add(c, c), add(4 * c, c), add(c, 4 * c);
  add(braid::model::padded_vocab(spec.model, 1), c);
  return median_seconds(5, [&] {
    for (Product& p : products) at::mm_out(p.y, p.x, p.weight.t());
    for (Product& p : products) {
      at::mm_out(p.dx, p.dy, p.weight);
      at::mm_out(p.dweight, p.dy.t(), p.x);
    }
  });
}

// a = b + c over arrays far larger than any cache; bytes per second.
double triad_bandwidth() {
  constexpr int64_t kCount = 1 << 26;
  std::vector<float> a(kCount), b(kCount, 1), c(kCount, 2);
  const double seconds = median_seconds(7, [&] {
    at::parallel_for(0, kCount, 1 << 16, [&](int64_t begin, int64_t end) {
      float* __restrict__ to = a.data();
      for (int64_t i = begin; i < end; ++i) to[i] = b[i] + c[i];
    });
  });
  return 3.0 * sizeof(float) * kCount / seconds;
}

void print_bound(const braid::RunSpec& spec) {
  const int64_t rows = int64_t{spec.train.microbatch} * spec.model.context;
  std::printf("{\"products\": %.6f, \"bandwidth\": %.4e, \"parameters\": %lld}\n", product_seconds(spec, rows),
              triad_bandwidth(), static_cast<long long>(braid::layout::count_params(spec.model)));
}

// From the first action's begin to the last one's end, on the slowest rank.
double pass_seconds(const braid::schedule::Timeline& timeline) {
  double longest = 0;
  for (const auto& row : timeline.ranks) {
    if (!row.empty()) longest = std::max(longest, row.back().end - row.front().begin);
  }
  return longest;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given = arguments(argc, argv);
  const braid::RunSpec spec = spec_of(given);
  const braid::data::Corpus corpus = bench::random_corpus(spec);
  braid::param::install_memory_accounting();
  bench::Commands commands(given.ranks());
  braid::run_ranks(given.ranks(), [&](braid::Communicator& world) {
    const bool first = world.rank() == 0;
    if (given.ranks() > 1) bench::pin_to_core(world.rank());
    at::get_num_threads();
    at::set_num_threads(given.threads);
    braid::param::account_memory_to(world.rank());
    braid::train::Trainer trainer(spec, corpus, world);
    commands.serve(world.rank(), [&](const std::string& command) {
      if (command == "step") {
        const double seconds = trainer.step().seconds, passes = pass_seconds(trainer.timeline());
        if (first) std::printf("{\"seconds\": %.6f, \"passes\": %.6f}\n", seconds, passes);
      } else if (first) {
        print_bound(spec);
      }
    });
  });
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  std::printf("{\"peak_bytes\": %lld}\n", static_cast<long long>(use.ru_maxrss) * 1024);
}
