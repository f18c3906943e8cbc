// Steps of GPT-2 124M on data ranks, for bench/data_parallel/run: thread ranks with one bound thread each; for each
// line "step" on standard input a step, for each line "exchange" the gradients' way by itself, beside the time that the
// same ranks take to add to as many bytes in place. It does not judge.
#include <ATen/Parallel.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/support/commands.h"
#include "bench/support/training_steps.h"
#include "braid/base/clock.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/param/memory_account.h"
#include "braid/sync/bucketed_all_reduce.h"
#include "braid/train/trainer.h"

namespace {

using braid::now_seconds;

struct Arguments {
  std::string dtype;
  int context = 64, rank_batch = 2, ranks = 2, zero = 0;
  std::string compression = "none";
};

Arguments arguments(int argc, char** argv) {
  if (argc < 6 || argc > 7) {
    std::fprintf(stderr, "usage: bench_data_parallel DTYPE CONTEXT BATCH_PER_RANK RANKS ZERO [COMPRESSION]\n");
    std::exit(2);
  }
  const std::string compression = argc > 6 ? argv[6] : "none";
  return {argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]), compression};
}

braid::RunSpec spec_of(const Arguments& given) {
  braid::RunSpec spec;
  spec.model = {.layers = 12, .heads = 12, .width = 768, .context = given.context, .vocab = 50257};
  spec.mesh.data = given.ranks;
  spec.sync.zero = given.zero;
  spec.sync.compression = braid::value_of<braid::CompressionKind>(given.compression).value();
  spec.optimizer.lr = 1e-4;
  spec.optimizer.clip_norm = 0;  // the peer does not clip
  spec.train.steps = 1000000;
  spec.train.batch = given.rank_batch * given.ranks;
  spec.train.microbatch = given.rank_batch;
  spec.train.dtype = braid::value_of<braid::DType>(given.dtype).value();
  spec.train.threads = 1;
  return spec;
}

double median_seconds(std::barrier<>& everyone, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int round = 0; round < 6; ++round) {
    everyone.arrive_and_wait();
    const double begin = now_seconds();
    work();
    everyone.arrive_and_wait();
    if (round > 0) seconds.push_back(now_seconds() - begin);
  }
  return bench::median(seconds);
}

// All buckets of the gradients over the ranks. An all-reduce of n tensors reads and writes each once.
void exchange(braid::param::ParamStore& store, braid::Communicator& world, std::barrier<>& everyone) {
  const braid::sync::BucketPlan plan = braid::sync::bucket_plan(store, {});
  const at::Tensor mine = at::zeros_like(store.flat_grads());
  const double seconds = median_seconds(everyone, [&] {
    std::vector<braid::Work> works;
    for (const braid::sync::BucketShape& bucket : plan.buckets) {
      works.push_back(world.all_reduce(mine.narrow(0, bucket.begin, bucket.end - bucket.begin), braid::ReduceOp::Sum));
    }
    for (braid::Work& work : works) work.wait_host();
  });
  // As many bytes read and written, by every rank for itself: a yardstick that an exchange may beat.
  const double in_place = median_seconds(everyone, [&] { mine.add_(1); });
  if (world.rank() == 0) std::printf("{\"exchange\": %.6f, \"in_place\": %.6f}\n", seconds, in_place);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given = arguments(argc, argv);
  const braid::RunSpec spec = spec_of(given);
  const braid::data::Corpus corpus = bench::random_corpus(spec);
  braid::param::install_memory_accounting();
  bench::Commands commands(given.ranks);
  braid::run_ranks(given.ranks, [&](braid::Communicator& world) {
    const bool first = world.rank() == 0;
    bench::pin_to_core(world.rank());
    at::get_num_threads();
    at::set_num_threads(1);
    braid::param::account_memory_to(world.rank());
    braid::train::Trainer trainer(spec, corpus, world);
    commands.serve(world.rank(), [&](const std::string& command) {
      if (command == "step") {
        const double seconds = trainer.step().seconds;
        if (first) std::printf("{\"seconds\": %.6f}\n", seconds);
      } else {
        exchange(trainer.model().params(), world, commands.everyone());
      }
    });
  });
}
