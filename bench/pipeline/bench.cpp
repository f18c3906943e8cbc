// One side of the comparison in README.md: trains GPT-2 124M (untied, no clipping) as a pipeline of two ranks with one
// bound thread each, a step for each line "step" on standard input, and says how long it took. "predict" plays the same
// schedule on the simulator with stage times measured in the steps since the last "predict". It does not judge.
#include <ATen/Parallel.h>
#include <pthread.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/seeds.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/sim/simulate.h"
#include "braid/train/step_schedule.h"
#include "braid/train/trainer.h"

namespace {

constexpr int kRanks = 2;

struct Arguments {
  std::string schedule, dtype;
  int context = 64, microbatches = 8;
  std::vector<int> layers;
};

Arguments arguments(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: bench_pipeline SCHEDULE DTYPE CONTEXT MICROBATCHES LAYERS,OF,STAGES\n");
    std::exit(2);
  }
  Arguments given{argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]), {}};
  std::string layers = argv[5];
  for (size_t at = 0; at != layers.npos;) {
    given.layers.push_back(std::atoi(layers.c_str() + at));
    at = layers.find(',', at);
    if (at != layers.npos) ++at;
  }
  return given;
}

braid::RunSpec spec_of(const Arguments& given) {
  braid::RunSpec spec;
  spec.model = {.layers = 12, .heads = 12, .width = 768, .context = given.context, .vocab = 50257};
  spec.model.output_weights = "untied";
  spec.mesh.pipe = kRanks;
  spec.pipeline.schedule = given.schedule;
  spec.pipeline.layers = given.layers;
  spec.optimizer.lr = 1e-4;
  spec.optimizer.clip_norm = 0;
  spec.train.steps = 1000000;
  spec.train.batch = given.microbatches;
  spec.train.microbatch = 1;
  spec.train.dtype = given.dtype;
  spec.train.threads = 1;
  return spec;
}

braid::Corpus random_corpus(const braid::RunSpec& spec) {
  std::vector<int> tokens(1 << 20);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int>(braid::random_bits(3, i) % spec.model.vocab);
  const auto source = std::make_shared<braid::MemoryTokens>(spec.model.vocab);
  source->add_document(tokens);
  braid::Corpus corpus;
  corpus.train.push_back({source});
  corpus.num_documents = 1;
  return corpus;
}

void pin_to_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// What the steps so far took, action by action.
class Measured {
 public:
  void add(const braid::Timeline& timeline, double step_seconds) {
    double begin = 1e300, end = 0;
    for (const auto& row : timeline.ranks) {
      bool fused = false;  // with the action before: both spans cover the pair
      for (const braid::Span& span : row) {
        const bool pair = fused || span.action.fusion == braid::Fusion::WithNext;
        fused = span.action.fusion == braid::Fusion::WithNext;
        add(span.action, span.end - span.begin, pair);
        begin = std::min(begin, span.begin);
        end = std::max(end, span.end);
      }
    }
    passes_.push_back(end - begin);
    outside_.push_back(step_seconds - (end - begin));
    bubbles_.push_back(timeline.bubble_fraction());
  }

  // Medians. A stage without separate passes has a weight pass of no time. A tensor that waits for its receiver takes
  // the shortest receive.
  braid::CostModel cost(int num_stages) const {
    braid::CostModel model;
    for (int stage = 0; stage < num_stages; ++stage) {
      using braid::Op;
      const double full = of(stage, Op::FullBackward), input = of(stage, Op::InputGrad);
      model.stages.push_back({of(stage, Op::Forward), input > 0 ? input : full, of(stage, Op::WeightGrad)});
    }
    model.transfer = receives_.empty() ? 0 : *std::min_element(receives_.begin(), receives_.end());
    return model;
  }

  double passes() const { return median(passes_); }
  double outside() const { return median(outside_); }  // the optimizer, and whatever else a step does
  double bubble() const { return median(bubbles_); }
  void clear() { *this = {}; }

 private:
  void add(const braid::Action& action, double seconds, bool pair) {
    if (action.op == braid::Op::RecvForward || action.op == braid::Op::RecvBackward) receives_.push_back(seconds);
    if (braid::computes(action.op) && !pair) ops_[{action.stage, action.op}].push_back(seconds);
  }
  double of(int stage, braid::Op op) const {
    const auto found = ops_.find({stage, op});
    return found == ops_.end() ? 0 : median(found->second);
  }

  std::map<std::pair<int, braid::Op>, std::vector<double>> ops_;
  std::vector<double> receives_, passes_, outside_, bubbles_;
};

void predict(const braid::RunSpec& spec, const Measured& measured) {
  const braid::Schedule schedule = braid::step_schedule(spec);
  const braid::Timeline timeline = braid::simulate(schedule, measured.cost(schedule.num_stages));
  std::printf(
      "{\"predicted\": %.6f, \"passes\": %.6f, \"optimizer\": %.6f, \"simulated_bubble\": %.4f, "
      "\"measured_bubble\": %.4f}\n",
      timeline.makespan(), measured.passes(), measured.outside(), timeline.bubble_fraction(), measured.bubble());
}

}  // namespace

int main(int argc, char** argv) {
  const braid::RunSpec spec = spec_of(arguments(argc, argv));
  const braid::Corpus corpus = random_corpus(spec);
  std::string command;
  Measured measured;
  std::barrier everyone(kRanks);
  braid::run_ranks(kRanks, [&](braid::Communicator& world) {
    const bool first = world.rank() == 0;
    pin_to_core(world.rank());
    at::get_num_threads();
    at::set_num_threads(1);
    braid::Trainer trainer(spec, corpus, world);
    if (first) std::printf("ready\n"), std::fflush(stdout);
    while (true) {
      if (first && !std::getline(std::cin, command)) command = "end";
      everyone.arrive_and_wait();
      if (command == "end") break;
      if (command == "step") {
        const double seconds = trainer.step().seconds;
        const braid::Timeline timeline = trainer.timeline();
        if (first) measured.add(timeline, seconds), std::printf("{\"seconds\": %.6f}\n", seconds);
      } else if (first) {
        predict(spec, measured);
        measured.clear();
      }
      if (first) std::fflush(stdout);
      everyone.arrive_and_wait();
    }
  });
}
