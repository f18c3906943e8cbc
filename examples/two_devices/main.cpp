// The smallest example: two layers on two devices, here two threads. The first device runs net1 and the activation, the
// second net2; four microbatches follow each other through both.
//
//   build/release/bin/example_two_devices
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstdio>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace {

constexpr int kSteps = 30;

torch::nn::Sequential two_layers() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(10, 10), torch::nn::ReLU(), torch::nn::Linear(10, 5));
}

std::vector<double> train_on_one(const at::Tensor& inputs, const at::Tensor& targets) {
  torch::nn::Sequential model = two_layers();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = torch::mse_loss(model->forward(inputs), targets);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

std::vector<double> train_on_two(const at::Tensor& inputs, const at::Tensor& targets) {
  std::vector<double> losses;
  braid::LayerList layers;
  layers.add(two_layers());

  braid::run_ranks(2, [&](braid::Communicator& pipe) {
    braid::ModulePipeline pipeline(layers, pipe,
                                   {.schedule = braid::make_schedule("1f1b", {.ranks = 2, .microbatches = 4}),
                                    .loss = torch::nn::MSELoss(),
                                    .balance = {2, 1}});
    torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
    for (int step = 0; step < kSteps; ++step) {
      optimizer.zero_grad();
      const auto loss = pipeline.step({inputs}, {targets});
      optimizer.step();
      if (loss) losses.push_back(*loss);  // on the rank of the last stage
    }
  });
  return losses;
}

}  // namespace

int main() {
  torch::manual_seed(2);
  const at::Tensor inputs = torch::randn({20, 10}), targets = torch::randn({20, 5});
  const auto one = train_on_one(inputs, targets), two = train_on_two(inputs, targets);
  double apart = 0;
  for (int step = 0; step < kSteps; ++step) {
    apart = std::fmax(apart, std::fabs(one[step] - two[step]));
    if (step % 5 == 0) std::printf("step %2d  one device %.6f  two devices %.6f\n", step, one[step], two[step]);
  }
  return apart < 1e-5 && two.back() < two.front() ? 0 : 1;
}
