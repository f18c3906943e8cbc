// A user's gradients on a parameter server: their mean or their sum, each clipped by its own norm, pushed
// whole, and decayed where the field decays.
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <functional>
#include <string>
#include <vector>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"

namespace braid::modules::data_parallel_servers_test {
namespace {

ServerOptimizer plain_descent() { return {.kind = OptimizerKind::Sgd, .momentum = 0, .weight_decay = 0}; }

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
      const SyncSpec sync{.replication = ReplicationKind::ParameterServer};
      DataParallel parallel(layers, world, {.sync = sync, .optimizer = plain_descent(), .scale = scale});
      parallel.backward(parallel.forward(inputs).square().sum());
      EXPECT_GT(parallel.clip_grad_norm(kNorm), 10 * kNorm);
      parallel.step(kRate);
    });
    const double moved = modules[1]->weight.detach().sub(before).norm().item<double>();
    EXPECT_NEAR(moved, (scale == GradientScale::Sum ? 3 : 1) * kRate * kNorm, 1e-6);
  }
}

// A gradient of one at every element and step: a sum of pushes tells how many steps are in it.
at::Tensor steps_seen(Consistency consistency, int num_steps, const std::function<bool(int step)>& looks) {
  constexpr double kRate = 0.25;
  std::vector<torch::nn::Linear> modules;
  for (int rank = 0; rank < 2; ++rank) {
    modules.emplace_back(torch::nn::LinearOptions(3, 2).bias(false));
    modules.back()->to(at::kDouble);
    modules.back()->weight.data().zero_();
  }
  at::Tensor seen = at::zeros({0}, at::kDouble);
  run_ranks(2, [&](Communicator& world) {
    const torch::nn::Linear& linear = modules[static_cast<size_t>(world.rank())];
    const SyncSpec sync{.replication = ReplicationKind::ParameterServer,
                        .servers = 2,
                        .consistency = consistency,
                        .staleness = 2,
                        .push_every = 3,
                        .pull_every = 2};
    DataParallel parallel(LayerList().add("linear", linear), world, {.sync = sync, .optimizer = plain_descent()});
    for (int step = 1; step <= num_steps; ++step) {
      parallel.backward(linear->weight.sum());
      parallel.step(kRate);
      if (!looks(step)) continue;
      parallel.with_whole_parameters([&] {
        EXPECT_EQ(linear->weight.min().item<double>(), linear->weight.max().item<double>());
        if (world.rank() == 1) seen = at::cat({seen, linear->weight.detach().flatten().slice(0, 0, 1) / -kRate});
      });
    }
  });
  return seen;
}

TEST(DataParallelServers, PushWhatIsHeldBackBeforeParametersAreLookedAt) {
  for (const auto consistency : {Consistency::Bsp, Consistency::Ssp, Consistency::Asp}) {
    SCOPED_TRACE(consistency);
    const double pushes = consistency == Consistency::Bsp ? 1 : 2;  // the mean of the workers' pushes, or each
    const at::Tensor want = at::tensor({2.0, 7.0, 8.0}, at::kDouble) * pushes;
    const at::Tensor got = steps_seen(consistency, 8, [](int step) { return step == 2 || step >= 7; });
    EXPECT_TRUE(got.equal(want)) << got;
  }
}

// AdamW without a gradient is its decay alone.
TEST(DataParallelServers, DecayMatricesAndNoVectors) {
  torch::manual_seed(4);
  torch::nn::Linear linear(5, 3);
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({3}));
  linear->weight.data().normal_();
  linear->bias.data().normal_();
  const at::Tensor matrix = linear->weight.detach().clone(), bias = linear->bias.detach().clone();
  run_ranks(1, [&](Communicator& world) {
    DataParallel parallel(
        LayerList().add("linear", linear).add("norm", norm), world,
        {.sync = {.replication = ReplicationKind::ParameterServer}, .optimizer = {.weight_decay = 0.5}});
    parallel.backward(0 * parallel.forward(torch::randn({4, 5})).sum());
    parallel.step(0.25);
  });
  EXPECT_TRUE(linear->weight.detach().equal(matrix * (1 - 0.25 * 0.5)));
  EXPECT_TRUE(linear->bias.detach().equal(bias));
  EXPECT_TRUE(norm->weight.detach().equal(torch::ones({3})));
}

TEST(DataParallelServers, UpdateElementByElementWithinBounds) {
  run_ranks(1, [&](Communicator& world) {
    torch::nn::Linear linear(5, 3);
    const ServerOptimizer optimizer{.kind = OptimizerKind::Muon, .beta1 = 2};
    try {
      DataParallel(LayerList().add("linear", linear), world,
                   {.sync = {.replication = ReplicationKind::ParameterServer}, .optimizer = optimizer});
      ADD_FAILURE() << "servers know no matrices";
    } catch (const ConfigError& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("with updates of whole matrices, since servers hold"), said.npos) << said;
      EXPECT_NE(said.find("optimizer.beta1 = 2"), said.npos) << said;
    }
  });
}

}  // namespace
}  // namespace braid::modules::data_parallel_servers_test
