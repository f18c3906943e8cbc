// Ranks whose losses do not depend on the same layers train with gathered parameters as with whole ones.
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <optional>

#include "braid/base/text.h"
#include "braid/module/data_parallel.h"
#include "braid/module/module_pipeline.h"
#include "braid/module/optimizer_on_disk.h"
#include "braid/schedule/generators.h"
#include "tests/module/models_on_disk.h"
#include "tests/module/small_models.h"

namespace braid::modules::skipped_layers_test {
namespace {

using small_models::expect_near;

constexpr int kRanks = 2, kSteps = 2;
constexpr int64_t kSize = 6;

enum class Skip { Weight, Graph };  // the layer does not use its weight, or cuts the graph behind itself

struct Skipping {
  std::vector<int> weights;  // by layer
  int layer;                 // rank 1 skips it
  int forwards = 1;          // in each backward; the layer is skipped in the first
  Skip skip = Skip::Weight;
};

struct SkippingModel {
  LayerList layers;
  Tensors weights = {};
  std::shared_ptr<bool> skips = std::make_shared<bool>(false);

  explicit SkippingModel(const Skipping& how) {
    torch::manual_seed(1);
    for (size_t number = 0; number < how.weights.size(); ++number) {
      weights.push_back(at::randn({kSize, kSize}, at::kDouble).mul(0.4).requires_grad_(true));
    }
    for (size_t l = 0; l < how.weights.size(); ++l) {
      const at::Tensor weight = weights[static_cast<size_t>(how.weights[l])];
      const bool may_skip = static_cast<int>(l) == how.layer;
      const auto run = [weight, may_skip, skips = skips, skip = how.skip](const at::Tensor& x) {
        if (!may_skip || !*skips) return x.matmul(weight).tanh();
        return skip == Skip::Weight ? x * 0.9 : x.matmul(weight).detach();
      };
      layers.add(cat(l), run, {.parameters = {weight}});
    }
  }
  Tensors values() const {
    Tensors all;
    for (const at::Tensor& weight : weights) all.push_back(weight.detach().clone());
    return all;
  }
};

std::vector<SkippingModel> models(const Skipping& how) {
  std::vector<SkippingModel> all;
  for (int rank = 0; rank < kRanks; ++rank) all.emplace_back(how);
  return all;
}

at::Tensor rows(int number) { return at::arange(4 * kSize, at::kDouble).add(number).sin().view({4, kSize}); }

class SkippedLayers : public models_on_disk::ModelMemoryTest {
 protected:
  // Returns the weights after some steps.
  Tensors trained(const Skipping& how, const SyncSpec& sync, const ModelMemory& memory) {
    const auto all = models(how);
    Tensors weights;
    run_ranks(kRanks, [&](Communicator& world) {
      const SkippingModel& mine = all[static_cast<size_t>(world.rank())];
      DataParallel model(mine.layers, world, {.sync = sync, .memory = memory});
      torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      OptimizerOnDisk disk(optimizer, {{folder_}, 8192});
      for (int step = 0; step < kSteps; ++step) {
        at::Tensor loss;
        for (int forward = 0; forward < how.forwards; ++forward) {
          *mine.skips = world.rank() == 1 && forward == 0;
          const at::Tensor more = model.forward(rows(world.rank() + 2 * forward)).square().mean();
          loss = loss.defined() ? loss + more : more;
        }
        model.backward(loss);
        model.step(disk);
      }
      model.with_whole_parameters([&] {
        if (world.rank() == 0) weights = mine.values();
      });
    });
    return weights;
  }
  void expect_same(const Skipping& how) {
    const Tensors want = trained(how, {}, {});
    expect_near(trained(how, {.zero = 2}, {}), want);
    expect_near(trained(how, {.zero = 3}, {}), want);
    expect_near(trained(how, {}, on_disk()), want);
    expect_near(trained(how, {.zero = 2}, on_disk()), want);
  }
};

// Its gradient arrives at rank 1 before that of a layer between its uses.
TEST_F(SkippedLayers, AUseOfATiedWeight) {
  expect_same({.weights = {0, 1, 2, 3, 2, 4}, .layer = 2});
  expect_same({.weights = {0, 1, 2, 3, 2, 4}, .layer = 4});
}

// The backward of the first layers does not run on rank 1.
TEST_F(SkippedLayers, TheFirstOnes) {
  expect_same({.weights = {0, 1, 2, 3}, .layer = 0});
  expect_same({.weights = {0, 1, 2, 3}, .layer = 2, .skip = Skip::Graph});
}

TEST_F(SkippedLayers, InOneOfTwoForwards) {
  for (const int layer : {0, 1, 3}) expect_same({.weights = {0, 1, 2, 3}, .layer = layer, .forwards = 2});
  expect_same({.weights = {0, 1, 0, 2}, .layer = 0, .forwards = 2});
}

TEST_F(SkippedLayers, InAPipeline) {
  const Skipping tied{.weights = {0, 1, 2, 1, 3}, .layer = 1}, first{.weights = {0, 1, 2, 3}, .layer = 0};
  for (const Skipping& how : {tied, first}) {
    std::vector<Tensors> found;
    for (const auto& [zero, memory] : {std::pair(0, ModelMemory()), {3, ModelMemory()}, {2, on_disk()}}) {
      const auto all = models(how);
      *all[1].skips = true;
      run_ranks(kRanks, [&](Communicator& world) {
        const auto pipe = world.split(world.rank(), 0, "pipe");
        const auto loss = [](const at::Tensor& x, const at::Tensor&) { return x.square().mean(); };
        const SkippingModel& mine = all[static_cast<size_t>(world.rank())];
        ModulePipeline model(mine.layers, *pipe,
                             {.schedule = schedule::gpipe(1, 2),
                              .loss = loss,
                              .data = &world,
                              .sync = {.zero = zero},
                              .memory = memory});
        torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
        OptimizerOnDisk disk(optimizer, {{folder_}, 8192});
        for (int step = 0; step < kSteps; ++step) {
          if (!memory.has_disk()) optimizer.zero_grad();
          model.step({rows(world.rank())}, {rows(0)});
          model.update(disk);
        }
        model.with_whole_parameters([&] {
          if (world.rank() == 0) found.push_back(mine.values());
        });
      });
    }
    expect_near(found[1], found[0]);
    expect_near(found[2], found[0]);
  }
}

}  // namespace
}  // namespace braid::modules::skipped_layers_test
