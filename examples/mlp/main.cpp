// A multilayer perceptron that tells three spiral arms apart, as a pipeline of two ranks, by any synchronous schedule:
//
//   build/release/bin/example_mlp [SCHEDULE]        default 1f1b
//
// It trains in double precision beside the same model on one rank and says how far the two came apart.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/adam.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <numbers>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace {

constexpr int kSteps = 80, kArms = 3, kMicrobatches = 8;

struct Points {
  at::Tensor places, arms;
};

// Three arms of a spiral, one after another, with noise.
Points spiral(int64_t count) {
  const at::Tensor arms = torch::arange(count).remainder(kArms);
  const at::Tensor radius = torch::rand({count}, at::kDouble).sqrt();
  const at::Tensor angle =
      radius * 5 + arms * (2 * std::numbers::pi / kArms) + 0.1 * torch::randn({count}, at::kDouble);
  return {torch::stack({radius * angle.cos(), radius * angle.sin()}, 1), arms};
}

torch::nn::Sequential perceptron() {
  torch::manual_seed(1);
  torch::nn::Sequential model;
  for (const auto& [in, out] : {std::pair(2, 64), std::pair(64, 64), std::pair(64, 64)}) {
    model->push_back(torch::nn::Linear(in, out));
    model->push_back(torch::nn::Tanh());
  }
  model->push_back(torch::nn::Linear(64, kArms));
  model->to(at::kDouble);
  return model;
}

double accuracy(const at::Tensor& scores, const at::Tensor& arms) {
  return scores.argmax(1).eq(arms).to(at::kDouble).mean().item<double>();
}

std::vector<double> train_on_one(const Points& train) {
  torch::nn::Sequential model = perceptron();
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = torch::cross_entropy_loss(model->forward(train.places), train.arms);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

struct Outcome {
  std::vector<double> losses;
  double accuracy = 0;
};

Outcome train_as_pipeline(const braid::Schedule& schedule, const Points& train, const Points& test) {
  Outcome outcome;
  braid::LayerList layers;
  layers.add(perceptron());
  braid::run_ranks(schedule.num_ranks(), [&](braid::Communicator& pipe) {
    braid::ModulePipeline pipeline(layers, pipe, {.schedule = schedule, .loss = torch::nn::CrossEntropyLoss()});
    torch::optim::Adam optimizer(pipeline.parameters(), 0.01);
    for (int step = 0; step < kSteps; ++step) {
      optimizer.zero_grad();
      if (const auto loss = pipeline.step({train.places}, {train.arms})) outcome.losses.push_back(*loss);
      optimizer.step();
    }
    const auto scores = pipeline.forward({test.places});
    if (!scores.empty()) outcome.accuracy = accuracy(scores[0], test.arms);
  });
  return outcome;
}

}  // namespace

int main(int count, char** words) try {
  torch::manual_seed(2);
  const Points train = spiral(250), test = spiral(300);  // 250 rows are no multiple of 8 microbatches
  const char* name = count > 1 ? words[1] : "1f1b";
  const braid::Schedule schedule = braid::make_schedule(name, {.ranks = 2, .microbatches = kMicrobatches});
  const Outcome piped = train_as_pipeline(schedule, train, test);
  const auto serial = train_on_one(train);
  double apart = 0;
  for (int step = 0; step < kSteps; ++step) {
    apart = std::fmax(apart, std::fabs(serial[step] - piped.losses.at(step)));
    if (step % 10 == 0) std::printf("step %2d  loss %.6f\n", step, piped.losses[step]);
  }
  std::printf("%s on %d ranks: accuracy %.1f %%, losses within %.1e of one rank's\n", name, schedule.num_ranks(),
              100 * piped.accuracy, apart);
  return apart < 1e-8 && piped.accuracy > 0.9 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
