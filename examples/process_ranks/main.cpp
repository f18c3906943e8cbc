// A perceptron with dropout that tells three spiral arms apart, trained by two ranks that are processes: each draws its
// masks from its own default generator, and gradients are averaged.
//
//   build/release/bin/example_process_ranks
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <cstdio>
#include <exception>
#include <numbers>

#include "braid/base/errors.h"
#include "braid/launch/process_ranks.h"

namespace {

constexpr int kRanks = 2, kSteps = 120, kArms = 3;
constexpr int64_t kPointsPerRank = 150;

struct Points {
  at::Tensor places, arms;
};

// Three arms of a spiral, one after another, with noise.
Points spiral(int64_t count) {
  const at::Tensor arms = torch::arange(count).remainder(kArms), radius = torch::rand({count}).sqrt();
  const at::Tensor angle = radius * 5 + arms * (2 * std::numbers::pi / kArms) + 0.1 * torch::randn({count});
  return {torch::stack({radius * angle.cos(), radius * angle.sin()}, 1), arms};
}

void train(braid::Communicator& world) {
  torch::manual_seed(1);  // the same weights on all ranks
  using namespace torch::nn;
  Sequential model(Linear(2, 64), Tanh(), Dropout(0.1), Linear(64, 64), Tanh(), Dropout(0.1), Linear(64, kArms));
  torch::optim::Adam optimizer(model->parameters(), 0.02);
  torch::manual_seed(100 + world.rank());  // from here on points and masks of its own
  const Points points = spiral(kPointsPerRank);
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = torch::cross_entropy_loss(model->forward(points.places), points.arms);
    loss.backward();
    for (const at::Tensor& parameter : model->parameters()) {
      world.all_reduce(parameter.grad(), braid::ReduceOp::Sum).wait_host();
      parameter.grad().div_(world.size());
    }
    optimizer.step();
    if (world.rank() == 0 && step % 20 == 0) std::printf("step %3d  loss %.4f\n", step, loss.item<double>());
  }
  model->eval();
  const Points test = spiral(300);
  const at::Tensor hits = model->forward(test.places).argmax(1).eq(test.arms).to(at::kDouble).mean();
  world.all_reduce(hits, braid::ReduceOp::Sum).wait_host();
  const double accuracy = hits.item<double>() / world.size();
  if (world.rank() == 0) std::printf("accuracy on points never seen: %.1f %%\n", 100 * accuracy);
  if (accuracy < 0.9) throw braid::RunError("the ranks have not learnt the arms");
}

}  // namespace

int main() try { braid::run_process_ranks(kRanks, train); } catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
