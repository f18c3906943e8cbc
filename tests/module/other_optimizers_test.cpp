// Optimizers that do not update this model, which are refused, and those that update a part of it, which are not.
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "braid/base/errors.h"
#include "tests/module/saved_models.h"

namespace braid::modules::other_optimizers_test {
namespace {

using namespace saved_models;

class OfAnotherModel : public ScratchFolder, public testing::WithParamInterface<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, OfAnotherModel,
                         testing::Values(Ranks{nullptr}, Ranks{nullptr, 1, 2, 1}, Ranks{nullptr, 1, 2, 3},
                                         Ranks{"1f1b", 2}, Ranks{"1f1b", 2, 2, 2}));

// With sync.zero the modules' own parameters are not those of the model either.
Tensors own_parameters(const LayerList& layers) {
  Tensors all;
  for (int layer = 0; layer < layers.size(); ++layer) {
    if (!layers[layer].module) continue;
    for (const at::Tensor& each : layers[layer].module->parameters()) all.push_back(each);
  }
  return all;
}

TEST_P(OfAnotherModel, NeitherStepsNorSavesNorLoads) {
  const Ranks& ranks = GetParam();
  const Batch rows = batch(0);
  on(ranks, nets(ranks, 1), [&](const Trained& rank) { rank.model.save(path("saved"), rank.optimizer); });
  for (const bool on_disk : {false, true}) {
    const Lists lists = nets(ranks, 1);
    const Tensors other = own_parameters(ranks.zero > 0 ? lists[0] : net(2));
    const auto make = [&](const Tensors&) { return adamw(other); };
    const auto body = [&](const Trained& rank) {
      std::optional<OptimizerOnDisk> disk;
      if (on_disk) rank.disk = &disk.emplace(rank.optimizer, OptimizerOnDisk::Options{{folder_}});
      EXPECT_THROW(rank.model.save(path("wrong"), rank.optimizer), ConfigError);
      EXPECT_THROW(rank.model.load(path("saved"), rank.optimizer), ConfigError);
      EXPECT_THROW(rank.step(rows), ConfigError);
    };
    on(ranks, lists, body, make);
  }
}

std::pair<torch::optim::SGD, torch::optim::SGD> optimizers_of_halves(const Tensors& all) {
  const auto middle = all.begin() + std::ssize(all) / 2;
  return {torch::optim::SGD(Tensors(all.begin(), middle), 0.1), torch::optim::SGD(Tensors(middle, all.end()), 0.1)};
}

// Returns the parameters after a step of a model on one rank.
template <class Train>
Tensors after(const Train& train) {
  const LayerList layers = net(1);
  run_ranks(1, [&](Communicator& world) { train(layers, world); });
  Tensors all = own_parameters(layers);
  for (at::Tensor& each : all) each = each.detach().clone();
  return all;
}

// A step of two optimizers has the bits of one. Each has parameters of the model that the other one lacks.
TEST(HalvesOfAModel, AreOptimizersOfIt) {
  const Batch rows = batch(0);
  const auto want = after([&](const LayerList& layers, Communicator& world) {
    DataParallel model(layers, world);
    torch::optim::SGD whole(model.parameters(), 0.1);
    model.backward(loss_of(model.forward(rows.x), rows.y));
    model.step(whole);
  });
  const auto in_replicas = after([&](const LayerList& layers, Communicator& world) {
    DataParallel model(layers, world);
    auto [first, second] = optimizers_of_halves(model.parameters());
    model.backward(loss_of(model.forward(rows.x), rows.y));
    model.step([&] { first.step(), second.step(); });
  });
  const auto in_pipeline = after([&](const LayerList& layers, Communicator& world) {
    ModulePipeline model(layers, world, {.schedule = schedule::gpipe(1, 1), .loss = loss_of});
    auto [first, second] = optimizers_of_halves(model.parameters());
    model.step({rows.x}, {rows.y});
    model.update(first);
    model.update(second);
  });
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(in_replicas[i].equal(want[i])) << i;
    EXPECT_TRUE(in_pipeline[i].allclose(want[i], 1e-6, 1e-7)) << i;
  }
}

TEST(HalvesOfAModel, AnOptimizerOfNothingIsThatOfAStageWithoutParameters) {
  LayerList layers;
  layers.add("fc", torch::nn::Linear(7, 3)).add("act", torch::nn::Tanh());
  const Batch rows = batch(0);
  const at::Tensor weight = layers[0].module->parameters()[0], before = weight.detach().clone();
  run_ranks(2, [&](Communicator& world) {
    ModulePipeline model(layers, world, {.schedule = schedule::gpipe(2, 1), .loss = loss_of});
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    model.step({rows.x}, {rows.y});
    model.update(optimizer);
  });
  EXPECT_FALSE(weight.equal(before));
}

}  // namespace
}  // namespace braid::modules::other_optimizers_test
