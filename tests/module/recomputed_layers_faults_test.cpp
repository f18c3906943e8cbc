// Recomputed layers whose second forward would give wrong gradients end in errors that name them.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <functional>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/microbatch_listener.h"
#include "braid/module/module_pipeline.h"
#include "braid/module/recomputed_layer.h"
#include "braid/schedule/generators.h"

namespace braid::modules::recomputed_layers_faults_test {
namespace {

using torch::nn::Linear;

const LayerOptions kRecomputed{.activations = Activations::Recomputed};

at::Tensor rows() { return at::arange(12, at::kFloat).reshape({3, 4}).sub(5); }

// Returns the text of the error that `body` throws, after its kind.
std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return cat("ConfigError ", error.what());
  } catch (const RunError& error) {
    return cat("RunError ", error.what());
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

// Returns the error of a backward under DataParallel: a linear layer, the layers, and a sum.
std::string replicated(const LayerList& layers, const std::function<void(const at::Tensor& output)>& before = {}) {
  return error_of([&] {
    run_ranks(1, [&](Communicator& world) {
      DataParallel parallel(layers, world);
      const at::Tensor output = parallel.forward(rows());
      if (before) before(output);
      parallel.backward(output.sum());
    });
  });
}

// Returns the error of a step of a pipeline of one stage.
std::string piped(const LayerList& layers) {
  const auto loss = [](const at::Tensor& output, const at::Tensor&) { return output.sum(); };
  return error_of([&] {
    run_ranks(1, [&](Communicator& pipe) {
      ModulePipeline(layers, pipe, {.schedule = schedule::gpipe(1, 3), .loss = loss}).step({rows()}, {rows()});
    });
  });
}

template <class F>
LayerList after_linear(F function, LayerOptions options = kRecomputed) {
  LayerList layers;
  layers.add("fc", Linear(4, 4)).add("bad", std::move(function), std::move(options));
  return layers;
}

TEST(RecomputedLayersFaults, AWriteOfInputsIsRefused) {
  const auto layers = [] { return after_linear([](at::Tensor x) { return x.relu_().exp(); }); };
  expect_parts(replicated(layers()), {"ConfigError", "layers.bad.activations", "input 0", "in place"});
  expect_parts(piped(layers()), {"ConfigError", "layers.bad.activations", "input 0"});
  const Linear fc(4, 4);
  LayerOptions trains = kRecomputed;
  trains.parameters = fc->parameters();
  const auto clips = [fc](const at::Tensor& x) {
    const c10::AutoGradMode grad(false);
    fc->weight.clamp_(-1, 1);
    const c10::AutoGradMode again(true);
    return Linear(fc)(x);
  };
  expect_parts(replicated(after_linear(clips, trains)), {"ConfigError", "parameter 0", "in place"});
  const auto inside = [](const at::Tensor& x) { return (x * 2).relu_(); };
  EXPECT_EQ(replicated(after_linear(inside)), "none");
}

TEST(RecomputedLayersFaults, ALaterWriteOfInputsIsFound) {
  LayerList layers = after_linear([](const at::Tensor& x) { return std::pair(x * 2, x); }, {});
  layers.add(
      "sin", [](const at::Tensor& x, const at::Tensor& y) { return std::pair(x.sin(), y); }, kRecomputed);
  layers.add("late", [](at::Tensor x, at::Tensor y) { return x + y.mul_(2); });
  expect_parts(replicated(layers), {"RunError", "layer sin", "input 1", "in place"});
  LayerList views = after_linear([](const at::Tensor& x) { return x.flatten(); });
  views.add("late", [](at::Tensor x) { return x.relu_(); });
  expect_parts(replicated(views), {"RunError", "layer bad", "input 0"});
  LayerList pair;
  pair.add("fc", Linear(4, 4));
  pair.add(
      "two",
      [](const at::Tensor& x) {
        const at::Tensor y = x.sin();
        return std::pair(y, y.view(-1));
      },
      kRecomputed);
  pair.add("late", [](at::Tensor x, at::Tensor y) { return x.mul_(2).sum() + y.sum(); });
  expect_parts(replicated(pair), {"RunError", "layer two", "output 1"});
}

TEST(RecomputedLayersFaults, AGradientThatWouldBeLostIsRefused) {
  const at::Tensor scale = at::ones({4}).requires_grad_(true);
  const auto scaled = [scale](const at::Tensor& x) { return x * scale; };
  expect_parts(replicated(after_linear(scaled)), {"ConfigError", "layers.bad", "a leaf of [4]", "LayerOptions"});
  LayerOptions trains = kRecomputed;
  trains.parameters = {scale};
  EXPECT_EQ(replicated(after_linear(scaled, trains)), "none");
  at::Tensor seen;
  LayerList layers = after_linear([&](const at::Tensor& x) { return seen = x.sin(); }, {});
  layers.add(
      "late", [&](const at::Tensor& x) { return x * seen.cos(); }, kRecomputed);
  layers.add(
      "later", [&](const at::Tensor& x) { return x + seen; }, kRecomputed);
  expect_parts(replicated(layers), {"ConfigError", "layers.late", "a result of"});
}

TEST(RecomputedLayersFaults, TheSecondForwardIsNamed) {
  int calls = 0;
  const auto fails = [&](const at::Tensor& x) {
    if (++calls % 2 == 0) throw std::out_of_range("no more");
    return x.exp();
  };
  const std::string text = "layer bad, recomputed in backward: no more";
  expect_parts(replicated(after_linear(fails)), {"RunError", text});
  calls = 0;
  const auto grows = [&](const at::Tensor& x) { return ++calls % 2 == 0 ? x.exp().sum(0) : x.exp(); };
  expect_parts(replicated(after_linear(grows)), {"RunError", "layer bad, recomputed", "[4]", "[3, 4]"});
}

TEST(RecomputedLayersFaults, BackwardMayComeTwiceAndHasNoSecondDerivative) {
  const LayerList layers = after_linear([](const at::Tensor& x) { return x.exp(); });
  Tensors found;
  const auto twice = [&](const at::Tensor& output) {
    const Tensors weight{layers[0].module->parameters()[0]};
    for (int i = 0; i < 2; ++i) {
      found.push_back(torch::autograd::grad({output.sum()}, weight, {}, /*retain_graph=*/true)[0]);
    }
    torch::autograd::grad({output.sum()}, weight, {}, true, /*create_graph=*/true);
  };
  expect_parts(replicated(layers, twice), {"ConfigError", "layers.bad", "create_graph"});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(found[0].equal(found[1]));
  const auto freed = [&](const at::Tensor& output) {
    for (int i = 0; i < 2; ++i) torch::autograd::grad({output.sum()}, {layers[0].module->parameters()[0]});
  };
  expect_parts(replicated(layers, freed), {"a second time"});
}

struct OnlyListensImpl : torch::nn::Module, MicrobatchListener {
  at::Tensor forward(at::Tensor x) { return x * 2; }
  void begin_microbatch(const MicrobatchContext&) override {}
  void end_step(Communicator&) override {}
};
TORCH_MODULE(OnlyListens);

TEST(RecomputedLayersFaults, AListenerMustCaptureItsState) {
  LayerList layers;
  layers.add("fc", Linear(4, 4)).add("bad", OnlyListens(), kRecomputed);
  expect_parts(replicated(layers), {"ConfigError", "layers.bad", "capture_state"});
}

TEST(RecomputedLayersFaults, DrawsOfASharedGeneratorAreFound) {
  const auto draws = [](const at::Tensor& x) { return at::dropout(x, 0.5, true); };
  EXPECT_EQ(replicated(after_linear(draws)), "none") << "one rank";
  const std::string text = error_of([&] {
    const std::vector<LayerList> lists{after_linear(draws), after_linear(draws)};
    run_ranks(2, [&](Communicator& world) {
      DataParallel parallel(lists[world.rank()], world);
      parallel.backward(parallel.forward(at::ones({300, 4})).sum());
    });
  });
  expect_parts(text, {"RunError", "layer bad", "other numbers"});
  expect_parts(piped(after_linear(draws)), {"ConfigError", "layers.bad", "bernoulli"});
}

// As a counter of the program's own does.
TEST(RecomputedLayersFaults, OtherNumbersAreFound) {
  double calls = 0;
  const auto changes = [&](const at::Tensor& x) { return x * ++calls; };
  expect_parts(replicated(after_linear(changes)), {"RunError", "layer bad", "other numbers"});
}

// The first graph ends at the layer's inputs.
TEST(RecomputedLayersFaults, ASideResultIsNotDifferentiated) {
  at::Tensor side;
  const LayerList layers = after_linear([&](const at::Tensor& x) {
    side = x.square().sum();
    return x.exp();
  });
  const std::string text = error_of([&] {
    run_ranks(1, [&](Communicator& world) {
      DataParallel parallel(layers, world);
      const at::Tensor output = parallel.forward(rows());
      parallel.backward(output.sum() + side);
    });
  });
  expect_parts(text, {"ConfigError", "layers.bad", "not an output"});
}

struct WorksInABufferImpl : torch::nn::Module {
  WorksInABufferImpl() { work = register_buffer("work", at::zeros({4})); }
  at::Tensor forward(at::Tensor x) { return x.exp() + work.zero_(); }
  at::Tensor work;
};
TORCH_MODULE(WorksInABuffer);

// With several microbatches in flight, another forward writes the buffer before the first backward.
TEST(RecomputedLayersFaults, ABufferMayBeWrittenWithTheValuesThatItHas) {
  LayerList layers;
  layers.add("fc", Linear(4, 4)).add("work", WorksInABuffer(), kRecomputed);
  EXPECT_EQ(piped(layers), "none");
}

// So a later write of it is a write of all its uses, as it is after a kept layer.
TEST(RecomputedLayersFaults, WhatIsPassedOnStaysTheSameTensor) {
  Layer layer;
  const at::Tensor weight = at::ones({4}).requires_grad_(true), x = rows();
  layer.forward = [&](const Tensors& inputs) {
    const at::Tensor y = inputs[0] * weight;
    return Tensors{inputs[0], y, weight, y, y.detach()};
  };
  layer.options = kRecomputed;
  layer.options.parameters = {weight};
  const Tensors outputs = run_layer(layer, {x}, {.name = "layer"});
  EXPECT_TRUE(outputs[0].is_same(x));
  EXPECT_TRUE(outputs[2].is_same(weight));
  EXPECT_TRUE(outputs[3].is_same(outputs[1]));
  EXPECT_TRUE(outputs[1].requires_grad());
  EXPECT_FALSE(outputs[4].requires_grad());
}

TEST(RecomputedLayersFaults, ASequentialPassesItsOptionOn) {
  LayerList layers;
  layers.add(torch::nn::Sequential(Linear(4, 4), torch::nn::Tanh()), kRecomputed);
  for (int l = 0; l < layers.size(); ++l) EXPECT_EQ(layers[l].options.activations, Activations::Recomputed);
  EXPECT_EQ(layers.size(), 2);
}

}  // namespace
}  // namespace braid::modules::recomputed_layers_faults_test
