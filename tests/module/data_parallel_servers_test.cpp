// What a parameter server makes of a user's gradients: their mean or their sum, each clipped by its own norm.
#include <gtest/gtest.h>
#include <torch/nn.h>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"

namespace braid::data_parallel_servers_test {
namespace {

// All ranks have the same samples: their mean is one rank's gradient, their sum three times that.
TEST(DataParallelServers, SumsWhereSumsAreAskedForAndClipsByEachRanksNorm) {
  constexpr double kRate = 0.1, kNorm = 0.01;
  torch::manual_seed(1);
  const at::Tensor inputs = torch::randn({8, 5}, at::kDouble);
  torch::nn::Linear first(5, 3);
  first->to(at::kDouble);
  const at::Tensor before = first->weight.detach().clone();
  for (const GradientScale scale : {GradientScale::Average, GradientScale::Sum}) {
    std::vector<torch::nn::Linear> modules;
    for (int rank = 0; rank < 3; ++rank) {
      modules.emplace_back(torch::nn::LinearOptions(5, 3).bias(false));
      modules.back()->to(at::kDouble);
      modules.back()->weight.data().copy_(before);
    }
    run_ranks(3, [&](Communicator& world) {
      LayerList layers;
      layers.add("linear", modules[static_cast<size_t>(world.rank())]);
      const SyncSpec sync{.replication = "parameter-server", .server_optimizer = "sgd"};
      DataParallel parallel(layers, world, {.sync = sync, .scale = scale});
      parallel.backward(parallel.forward(inputs).square().sum());
      EXPECT_GT(parallel.clip_grad_norm(kNorm), 10 * kNorm);
      parallel.step(kRate);
    });
    const double moved = modules[1]->weight.detach().sub(before).norm().item<double>();
    EXPECT_NEAR(moved, (scale == GradientScale::Sum ? 3 : 1) * kRate * kNorm, 1e-6);
  }
}

}  // namespace
}  // namespace braid::data_parallel_servers_test
