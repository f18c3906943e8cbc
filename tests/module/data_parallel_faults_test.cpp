// What DataParallel refuses; and what ranks tell each other beside gradients.
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim/adam.h>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "tests/module/small_models.h"

namespace braid::data_parallel_faults_test {
namespace {

using namespace small_models;

TEST(DataParallel, RefusesWithEverythingThatIsWrong) {
  try {
    LayerList layers;
    layers.add("drop", torch::nn::Dropout(0.5)).add("half", torch::nn::Linear(2, 2));
    layers[1].module->to(at::kBFloat16);
    run_ranks(2, [&](Communicator& world) { DataParallel(layers, world, {.sync = {.zero = 1, .zero_group = 3}}); });
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("torch::nn::Dropout"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("zero_group"), std::string::npos);
  }
  const LayerList layers = perceptron();
  for (const SyncSpec& wrong :
       {SyncSpec{.replication = "all-reduc"}, SyncSpec{.compression = "zip"}, SyncSpec{.zero = 4},
        SyncSpec{.replication = "diloco", .zero = 1}, SyncSpec{.servers = 0}}) {
    run_ranks(1, [&](Communicator& world) { EXPECT_THROW(DataParallel(layers, world, {.sync = wrong}), ConfigError); });
  }
  LayerList narrow;
  narrow.add("half", torch::nn::Linear(2, 2));
  narrow[0].module->to(at::kBFloat16);
  run_ranks(1, [&](Communicator& world) { EXPECT_THROW(DataParallel(narrow, world), ConfigError); });
}

TEST(DataParallel, StateOfAnOptimizerIsThatOfRank0) {
  std::vector<LayerList> made = {perceptron(), perceptron()};
  run_ranks(2, [&](Communicator& world) {
    const LayerList& layers = made[static_cast<size_t>(world.rank())];
    torch::optim::Adam optimizer(all_parameters(layers), torch::optim::AdamOptions(0.01));
    for (int step = 0; world.rank() == 0 && step < 3; ++step) {
      torch::cross_entropy_loss(forward(layers, torch::ones({2, 5}, at::kDouble)), torch::zeros({2}, at::kLong))
          .backward();
      optimizer.step();
    }
    broadcast_state(optimizer, world);
    ASSERT_EQ(optimizer.state().size(), 4u);
    const at::Tensor first = all_parameters(layers)[0];
    const auto& state = static_cast<torch::optim::AdamParamState&>(*optimizer.state().at(first.unsafeGetTensorImpl()));
    EXPECT_EQ(state.step(), 3);
  });
  run_ranks(4, [&](Communicator& world) { EXPECT_DOUBLE_EQ(mean(world.rank(), world), 1.5); });
}

}  // namespace
}  // namespace braid::data_parallel_faults_test
