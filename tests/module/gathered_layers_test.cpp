// Layers whose parameters are gathered get the tensors that they get in memory: the same ones, with the same gradients.
#include <torch/csrc/autograd/autograd.h>

#include "braid/base/errors.h"
#include "braid/module/auxiliary_loss.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"
#include "tests/module/models_on_disk.h"

namespace braid::modules::gathered_layers_test {
namespace {

using models_on_disk::ModelMemoryTest;

constexpr int64_t kSize = 3;

at::Tensor new_weight() { return at::randn({kSize, kSize}).mul(0.4).requires_grad_(true); }

// A layer that multiplies by a weight, and returns what `outputs` makes of the product.
void add_product(LayerList& layers, const std::function<Tensors(const at::Tensor& y)>& outputs,
                 LayerOptions options = {}) {
  const at::Tensor weight = new_weight();
  options.parameters = {weight};
  layers.add([weight, outputs](const at::Tensor& x) { return outputs(x.matmul(weight)); }, options);
}

at::Tensor input() {
  torch::manual_seed(2);
  return at::randn({4, kSize});
}

class GatheredLayersTest : public ModelMemoryTest {
 protected:
  // Calls `body` with a model of one rank in memory and with one on disk, and a function that makes a step. Returns
  // what both return.
  template <class Body>
  auto in_memory_and_on_disk(const std::function<LayerList()>& make, const Body& body) {
    std::vector<decltype(body(std::declval<DataParallel&>(), std::function<void()>(), ModelMemory()))> found;
    for (const ModelMemory& memory : {ModelMemory(), on_disk()}) {
      torch::manual_seed(1);
      const LayerList layers = make();
      run_ranks(1, [&](Communicator& world) {
        DataParallel model(layers, world, {.memory = memory});
        torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
        OptimizerOnDisk disk(optimizer, {{folder_}, 8192});
        found.push_back(body(
            model, [&] { model.step(disk); }, memory));
      });
    }
    return found;
  }

  // Expects the same losses and norms of gradients in memory and on disk.
  void expect_bits_of_memory(const std::function<LayerList()>& make) {
    const auto numbers =
        in_memory_and_on_disk(make, [](DataParallel& model, const std::function<void()>& step, const ModelMemory&) {
          std::vector<double> of_steps;
          for (int number = 0; number < 2; ++number) {
            const at::Tensor loss = model.forward(input()).square().sum();
            model.backward(loss);
            of_steps.push_back(loss.item<double>());
            of_steps.push_back(model.clip_grad_norm(1e9));
            step();
          }
          return of_steps;
        });
    EXPECT_EQ(numbers[0], numbers[1]);
    for (const double number : numbers[0]) EXPECT_TRUE(std::isfinite(number));
  }
};

Tensors written_and_added(const at::Tensor& x, const at::Tensor& other) {
  x.relu_();
  return {x + other.view_as(x)};
}

TEST_F(GatheredLayersTest, ATensorThatIsReturnedTwiceIsWritten) {
  const std::function<Tensors(const at::Tensor&)> both[] = {[](const at::Tensor& y) {
                                                              return Tensors{y, y};
                                                            },
                                                            [](const at::Tensor& y) {
                                                              return Tensors{y, y.view({-1})};
                                                            },
                                                            [](const at::Tensor& y) {
                                                              return Tensors{y.view({-1, 1}).view_as(y), y};
                                                            }};
  for (const auto& outputs : both) {
    expect_bits_of_memory([&] {
      LayerList layers;
      add_product(layers, outputs);
      layers.add(written_and_added);
      add_product(layers, [](const at::Tensor& y) { return Tensors{y}; });
      return layers;
    });
  }
}

TEST_F(GatheredLayersTest, AnInputThatIsReturnedTwiceIsWritten) {
  expect_bits_of_memory([&] {
    LayerList layers;
    add_product(layers, [](const at::Tensor& y) { return Tensors{y}; });
    layers.add([](const at::Tensor& x) { return Tensors{x, x}; }).add(written_and_added);
    add_product(layers, [](const at::Tensor& y) { return Tensors{y}; });
    return layers;
  });
}

// The view is written before its first use, and its base is not an output.
TEST_F(GatheredLayersTest, AViewIsWritten) {
  expect_bits_of_memory([&] {
    LayerList layers;
    for (int layer = 0; layer < 3; ++layer) {
      add_product(layers, [](const at::Tensor& y) { return Tensors{y.t()}; });
      layers.add([](const at::Tensor& x) { return x; });
      layers.add([](const at::Tensor& x) { return x.relu_().t().contiguous(); });
    }
    return layers;
  });
}

TEST_F(GatheredLayersTest, AStashedTensorIsWritten) {
  std::vector<std::vector<double>> numbers;
  for (const ModelMemory& memory : {ModelMemory(), on_disk()}) {
    torch::manual_seed(1);
    LayerList layers;
    add_product(layers, [](const at::Tensor& y) { return Tensors{y, y}; }, {.stash = {"skip"}});
    layers.add([](const at::Tensor& x) { return x; }).add([](at::Tensor x) { return x.relu_(); });
    layers.add([](const at::Tensor& x, const at::Tensor& skip) { return x + skip; }, {.pop = {"skip"}});
    add_product(layers, [](const at::Tensor& y) { return Tensors{y}; });
    numbers.emplace_back();
    run_ranks(1, [&](Communicator& pipe) {
      const auto loss = [](const at::Tensor& x, const at::Tensor& y) { return (x - y).square().mean(); };
      ModulePipeline model(layers, pipe, {.schedule = schedule::gpipe(1, 2), .loss = loss, .memory = memory});
      torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      OptimizerOnDisk disk(optimizer, {{folder_}, 8192});
      for (int step = 0; step < 3; ++step) {
        if (!memory.has_disk()) optimizer.zero_grad();
        numbers.back().push_back(*model.step({input()}, {input()}));
        model.update(disk);
      }
    });
  }
  EXPECT_EQ(numbers[0], numbers[1]);
}

// No gradient is not a gradient of zeros: the derivative of the root of zero is infinite.
TEST_F(GatheredLayersTest, AnOutputIsNotUsed) {
  expect_bits_of_memory([] {
    LayerList layers;
    add_product(layers, [](const at::Tensor& y) { return Tensors{y, (y - y).sqrt()}; });
    return layers.add([](const at::Tensor& x, const at::Tensor&) { return x; });
  });
}

TEST_F(GatheredLayersTest, AnAuxiliaryLossIsNotUsed) {
  const AuxiliaryLossScope scope;
  expect_bits_of_memory([] {
    LayerList layers;
    add_product(layers, [](const at::Tensor& y) {
      contribute_auxiliary_loss((y - y).sqrt().sum());
      return Tensors{y};
    });
    return layers;
  });
}

TEST_F(GatheredLayersTest, AMaskNeedsNoGradient) {
  expect_bits_of_memory([] {
    LayerList layers;
    add_product(layers, [](const at::Tensor& y) { return Tensors{y, at::full({kSize}, 2.0)}; });
    return layers.add([](const at::Tensor& x, const at::Tensor& mask) {
      EXPECT_FALSE(mask.requires_grad());
      return x * mask;
    });
  });
}

TEST_F(GatheredLayersTest, AnOutputIsUndefined) {
  expect_bits_of_memory([] {
    LayerList layers;
    add_product(layers, [](const at::Tensor& y) { return Tensors{y, at::Tensor()}; });
    return layers.add([](const at::Tensor& x, const at::Tensor& none) {
      EXPECT_FALSE(none.defined());
      return x;
    });
  });
}

LayerList three_products() {
  LayerList layers;
  for (int layer = 0; layer < 3; ++layer) add_product(layers, [](const at::Tensor& y) { return Tensors{y.tanh()}; });
  return layers;
}

// The update does not leave old values of layers that another backward has gathered.
TEST_F(GatheredLayersTest, BackwardsOfTheCallerBeforeAStep) {
  const auto losses = in_memory_and_on_disk(
      three_products, [](DataParallel& model, const std::function<void()>& step, const ModelMemory& memory) {
        std::vector<double> of_steps;
        for (int number = 0; number < 3; ++number) {
          const at::Tensor x = input().requires_grad_(true);
          const auto loss = [&] { return model.forward(x).square().sum(); };
          const at::Tensor first = loss();
          of_steps.push_back(first.item<double>());
          model.backward(first);
          torch::autograd::grad({loss()}, {x});
          if (memory.has_disk()) {
            EXPECT_THROW(loss().backward(), ConfigError);
          }
          step();
        }
        return of_steps;
      });
  EXPECT_EQ(losses[0], losses[1]);
}

// torch::autograd::grad() by the model's output ends there: no layer is gathered, and its graph may be kept.
TEST_F(GatheredLayersTest, APenaltyOnTheOutputDoesNotGather) {
  const auto losses = in_memory_and_on_disk(
      three_products, [](DataParallel& model, const std::function<void()>& step, const ModelMemory&) {
        std::vector<double> of_steps;
        for (int number = 0; number < 3; ++number) {
          const at::Tensor y = model.forward(input());
          const at::Tensor slope =
              torch::autograd::grad({y.pow(3).sum()}, {y}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
          const at::Tensor loss = y.square().sum() + slope.square().sum().mul(0.01);
          of_steps.push_back(loss.item<double>());
          model.backward(loss);
          step();
        }
        return of_steps;
      });
  EXPECT_EQ(losses[0], losses[1]);
}

// A rank whose loss does not depend on the model gathers with the others.
TEST_F(GatheredLayersTest, ALossOfOneRankThatDependsOnNoLayer) {
  for (const int64_t detached : {0, 1}) {
    std::vector<LayerList> lists;
    for (int rank = 0; rank < 2; ++rank) {
      torch::manual_seed(1);
      lists.push_back(three_products());
    }
    run_ranks(2, [&](Communicator& world) {
      DataParallel model(lists[world.rank()], world, {.sync = {.zero = 3}});
      torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1));
      const at::Tensor other = at::ones({1}).requires_grad_(true), y = model.forward(input()).square().sum();
      model.backward(world.rank() == detached ? other.sum() : y);
      EXPECT_GT(model.clip_grad_norm(1e9), 0);
      model.step(optimizer);
    });
  }
}

TEST_F(GatheredLayersTest, AGraphThatOutlivesTheModel) {
  torch::manual_seed(1);
  const LayerList layers = three_products();
  run_ranks(1, [&](Communicator& world) {
    at::Tensor loss;
    {
      DataParallel model(layers, world, {.memory = on_disk()});
      loss = model.forward(input()).sum();
    }
    EXPECT_THROW(loss.backward(), ConfigError);
  });
}

}  // namespace
}  // namespace braid::modules::gathered_layers_test
