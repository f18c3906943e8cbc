// A small residual network on images of CIFAR's shape, as a pipeline of two ranks. Batch norm is deferred: its running
// statistics are those of whole minibatches though the pipeline shows it microbatches. One residual connection is
// a skip between layers of the list, the others are within a block.
//
//   build/release/bin/example_resnet
//
// The images are made here: each class is a grating of its own direction and colour, under noise.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstdio>
#include <numbers>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/deferred_batch_norm.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;

constexpr int kClasses = 4, kSteps = 24, kRows = 32, kMicrobatches = 4;

Conv2d conv3x3(int64_t in, int64_t out, int64_t stride) {
  return Conv2d(Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

// relu(shortcut(x) + norm(conv(relu(norm(conv(x))))))
struct BlockImpl : torch::nn::Module {
  Conv2d conv1, conv2;
  braid::DeferredBatchNorm norm1, norm2;
  Conv2d shortcut{nullptr};

  BlockImpl(int64_t in, int64_t out, int64_t stride)
      : conv1(conv3x3(in, out, stride)), conv2(conv3x3(out, out, 1)), norm1(out), norm2(out) {
    register_module("conv1", conv1);
    register_module("norm1", norm1);
    register_module("conv2", conv2);
    register_module("norm2", norm2);
    if (stride == 1 && in == out) return;
    shortcut = register_module("shortcut", Conv2d(Conv2dOptions(in, out, 1).stride(stride).bias(false)));
  }
  at::Tensor forward(at::Tensor x) {
    const at::Tensor inner = norm2(conv2(norm1(conv1(x)).relu()));
    return (inner + (shortcut.is_empty() ? x : shortcut(x))).relu();
  }
};
TORCH_MODULE(Block);

braid::LayerList resnet() {
  torch::manual_seed(1);
  braid::LayerList layers;
  layers.add("stem", conv3x3(3, 8, 1)).add("norm", torch::nn::BatchNorm2d(8)).add("relu", torch::nn::ReLU());
  layers.stash("x").add("conv", conv3x3(8, 8, 1));
  layers.add("join", [](at::Tensor y, at::Tensor x) { return (y + x).relu(); }, {.pop = {"x"}});
  layers.add("block1", Block(8, 16, 2)).add("block2", Block(16, 32, 2));
  layers.add("pool", [](at::Tensor x) { return x.mean({2, 3}); }).add("head", torch::nn::Linear(32, kClasses));
  braid::defer_batch_norms(layers);
  return layers;
}

struct Images {
  at::Tensor pixels, classes;
};

Images gratings(int64_t count) {
  const at::Tensor classes = torch::arange(count).remainder(kClasses);
  const at::Tensor angle = (classes * (std::numbers::pi / kClasses)).view({-1, 1, 1, 1});
  const at::Tensor row = torch::arange(32).view({1, 1, -1, 1}), column = torch::arange(32).view({1, 1, 1, -1});
  const at::Tensor phase = 6 * torch::rand({count, 1, 1, 1}) + torch::arange(3).view({1, -1, 1, 1});
  const at::Tensor wave = ((angle.cos() * row + angle.sin() * column) * 0.8 + phase).sin();
  return {(wave + 0.5 * torch::randn({count, 3, 32, 32})).to(at::kFloat), classes};
}

at::Tensor loss_of(const at::Tensor& scores, const at::Tensor& classes) {
  return torch::cross_entropy_loss(scores, classes);
}

// Returns the expected loss of the first step: microbatches one after another on one rank.
double first_loss_on_one(const braid::LayerList& layers, const Images& batch) {
  const torch::NoGradGuard no_grad;
  double sum = 0;
  for (int micro = 0; micro < kMicrobatches; ++micro) {
    const int64_t rows = kRows / kMicrobatches;
    braid::Tensors flow{batch.pixels.narrow(0, micro * rows, rows)};
    at::Tensor kept;
    for (int index = 0; index < layers.size(); ++index) {
      const auto& options = layers[index].options;
      if (!options.pop.empty()) flow.push_back(kept);
      flow = layers[index].forward(flow);
      if (options.stash.empty()) continue;
      kept = flow.back();
      flow.pop_back();
    }
    sum += loss_of(flow[0], batch.classes.narrow(0, micro * rows, rows)).item<double>();
  }
  return sum / kMicrobatches;
}

struct Outcome {
  std::vector<double> losses;
  double accuracy = 0;
};

Outcome train(const braid::LayerList& layers, const std::vector<Images>& batches, const Images& test) {
  Outcome outcome;
  braid::run_ranks(2, [&](braid::Communicator& pipe) {
    const auto schedule = braid::make_schedule("1f1b", {.ranks = 2, .microbatches = kMicrobatches});
    braid::ModulePipeline pipeline(layers, pipe, {.schedule = schedule, .loss = loss_of, .balance = {5, 5}});
    torch::optim::SGD optimizer(pipeline.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    for (const Images& batch : batches) {
      optimizer.zero_grad();
      if (const auto loss = pipeline.step({batch.pixels}, {batch.classes})) outcome.losses.push_back(*loss);
      optimizer.step();
    }
    const auto scores = pipeline.forward({test.pixels});
    if (!scores.empty()) outcome.accuracy = scores[0].argmax(1).eq(test.classes).to(at::kFloat).mean().item<double>();
  });
  return outcome;
}

}  // namespace

int main() {
  torch::manual_seed(2);
  std::vector<Images> batches;
  for (int step = 0; step < kSteps; ++step) batches.push_back(gratings(kRows));
  const Images test = gratings(64);
  const braid::LayerList layers = resnet();
  const double expected = first_loss_on_one(layers, batches[0]);
  const Outcome outcome = train(layers, batches, test);
  for (int step = 0; step < kSteps; step += 4) std::printf("step %2d  loss %.4f\n", step, outcome.losses.at(step));
  std::printf("first loss %.6f, on one rank %.6f; accuracy on new images %.1f %%\n", outcome.losses[0], expected,
              100 * outcome.accuracy);
  return std::fabs(outcome.losses[0] - expected) < 1e-4 && outcome.accuracy > 0.8 ? 0 : 1;
}
