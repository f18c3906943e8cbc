// One side of the comparison in README.md: trains GPT-2 124M (untied, no clipping) as a pipeline of two ranks with one
// bound thread each, a step for each line "step" on standard input, and says how long it took. "predict" plays the same
// schedule on the simulator with stage times measured in the steps since the last "predict". It does not judge.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/support/commands.h"
#include "bench/support/training_steps.h"
#include "braid/base/clock.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/schedule/measured_cost.h"
#include "braid/schedule/simulate.h"
#include "braid/train/step_schedule.h"
#include "braid/train/trainer.h"

namespace {

constexpr int kRanks = 2;

struct Arguments {
  std::string schedule, dtype;
  int context = 64, microbatches = 8;
  std::string partition;  // blocks of each stage
};

Arguments arguments(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: bench_pipeline SCHEDULE DTYPE CONTEXT MICROBATCHES BLOCKS,OF,STAGES\n");
    std::exit(2);
  }
  return {argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]), argv[5]};
}

braid::RunSpec spec_of(const Arguments& given) {
  braid::RunSpec spec;
  spec.model = {.layers = 12, .heads = 12, .width = 768, .context = given.context, .vocab = 50257};
  spec.model.output_weights = braid::OutputWeights::Untied;
  spec.mesh.pipe = kRanks;
  spec.pipeline.schedule = given.schedule;
  spec.pipeline.partition = given.partition;
  spec.optimizer.lr = 1e-4;
  spec.optimizer.clip_norm = 0;
  spec.train.steps = 1000000;
  spec.train.batch = given.microbatches;
  spec.train.microbatch = 1;
  spec.train.dtype = braid::value_of<braid::DType>(given.dtype).value();
  spec.train.threads = 1;
  return spec;
}

// The times of the steps since the last prediction.
struct Measured {
  braid::schedule::MeasuredCost cost;
  std::vector<double> passes, outside, bubbles;  // outside: the optimizer, and whatever else a step does

  void add(const braid::schedule::Timeline& timeline, double step_seconds) {
    cost.add(timeline);
    passes.push_back(timeline.makespan());
    outside.push_back(step_seconds - timeline.makespan());
    bubbles.push_back(timeline.bubble_fraction());
  }
};

void predict(const braid::RunSpec& spec, const Measured& measured) {
  const braid::Schedule schedule = braid::train::step_schedule(spec);
  const braid::schedule::Timeline timeline =
      braid::schedule::simulate(schedule, measured.cost.cost(schedule.num_stages));
  std::printf(
      "{\"predicted\": %.6f, \"passes\": %.6f, \"optimizer\": %.6f, \"simulated_bubble\": %.4f, "
      "\"measured_bubble\": %.4f}\n",
      timeline.makespan(), bench::median(measured.passes), bench::median(measured.outside), timeline.bubble_fraction(),
      bench::median(measured.bubbles));
}

}  // namespace

int main(int argc, char** argv) {
  const braid::RunSpec spec = spec_of(arguments(argc, argv));
  const braid::data::Corpus corpus = bench::random_corpus(spec);
  Measured measured;
  bench::Commands commands(kRanks);
  braid::run_ranks(kRanks, [&](braid::Communicator& world) {
    const bool first = world.rank() == 0;
    bench::pin_to_core(world.rank());
    at::get_num_threads();
    at::set_num_threads(1);
    braid::train::Trainer trainer(spec, corpus, world);
    commands.serve(world.rank(), [&](const std::string& command) {
      if (command == "step") {
        const double seconds = trainer.step().seconds;
        const braid::schedule::Timeline timeline = trainer.timeline();
        if (first) measured.add(timeline, seconds), std::printf("{\"seconds\": %.6f}\n", seconds);
      } else if (first) {
        predict(spec, measured);
        measured = {};
      }
    });
  });
}
