// Users' modules with activations on disk: the gradients of memory, bit for bit, with and without a pipeline.
#include "braid/module/activations_on_disk.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace braid::activations_on_disk_test {
namespace {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Linear;

constexpr int64_t kRows = 8;

torch::nn::Sequential images() {
  torch::manual_seed(3);
  torch::nn::Sequential net;
  net->push_back(Conv2d(Conv2dOptions(3, 8, 3)));
  net->push_back(torch::nn::BatchNorm2d(8));
  net->push_back(torch::nn::ReLU());
  net->push_back(Conv2d(Conv2dOptions(8, 8, 3)));
  net->push_back(torch::nn::Tanh());
  net->push_back(torch::nn::GELU());
  return net;
}

at::Tensor loss_of(const at::Tensor& y) { return y.square().mean(); }

std::vector<at::Tensor> held_by(const torch::nn::Module& module) {
  std::vector<at::Tensor> held = module.parameters();
  for (const at::Tensor& buffer : module.buffers()) held.push_back(buffer);
  return held;
}

std::vector<at::Tensor> gradients(const torch::nn::Module& module) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : module.parameters()) all.push_back(parameter.grad());
  return all;
}

void expect_same(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << i;
}

class UserActivations : public testing::Test {
 protected:
  UserActivations() {
    torch::manual_seed(1);
    x_ = torch::randn({kRows, 3, 24, 24});
    auto net = images();
    loss_of(net->forward(x_)).backward();
    want_ = gradients(*net);
  }

  // Trains a step; the space has `bytes`, of which as much as the window is in memory at a time.
  std::vector<at::Tensor> trained(const ActivationsOnDisk& disk, int times = 1) {
    auto net = images();
    for (int i = 0; i < times; ++i) {
      net->zero_grad();
      at::Tensor loss;
      {
        const auto saving = disk.forward(held_by(*net));
        loss = loss_of(net->forward(x_));
      }
      loss.backward();
    }
    return gradients(*net);
  }

  at::Tensor x_;
  std::vector<at::Tensor> want_;
};

TEST_F(UserActivations, HaveTheBitsOfMemoryAndAreReadOnce) {
  const ActivationsOnDisk disk({.folders = {"."}, .bytes = 64 << 20, .window_bytes = 64 << 10});
  expect_same(trained(disk), want_);
  const int64_t written = disk.bytes_written();
  EXPECT_GT(written, 5 * kRows * 8 * 20 * 20 * 4) << "outputs of layers";
  EXPECT_GT(disk.bytes_read(), written / 2);
  EXPECT_LE(disk.bytes_read(), written);
  trained(disk, 3);
  EXPECT_EQ(disk.bytes_written(), 4 * written) << "places on disk are used again";
}

TEST_F(UserActivations, WhatFindsNoRoomStaysInMemory) {
  const ActivationsOnDisk disk({.folders = {"."}, .bytes = kRows * 8 * 22 * 22 * 4 + 4096});
  expect_same(trained(disk), want_);
  EXPECT_GT(disk.bytes_written(), 0);
  EXPECT_LE(disk.bytes_written(), kRows * 8 * 22 * 22 * 4 + 4096);
}

TEST_F(UserActivations, ConjugateViewsKeepTheirValues) {
  const ActivationsOnDisk disk({.folders = {"."}, .bytes = 64 << 20}), nowhere({.folders = {"."}});
  const auto gradient = [&](bool moves) {
    torch::manual_seed(2);
    const at::Tensor z = torch::randn({64, 64}, at::kComplexDouble).requires_grad_(true);
    at::Tensor loss;
    {
      const auto saving = (moves ? disk : nowhere).forward({});
      loss = torch::real(z.exp().conj().matmul(z.sin())).square().sum();
    }
    loss.backward();
    return z.grad();
  };
  EXPECT_TRUE(gradient(true).equal(gradient(false)));
}

TEST_F(UserActivations, ParametersDoNotMove) {
  const ActivationsOnDisk disk({.folders = {"."}, .bytes = 64 << 20});
  const Linear wide(64, 64);
  const at::Tensor few = torch::randn({1, 64});
  at::Tensor loss;
  {
    const auto saving = disk.forward(wide->parameters());
    loss = loss_of(Linear(wide)(few));
  }
  loss.backward();
  EXPECT_EQ(disk.bytes_written(), 0) << "16 KiB of weights";
}

TEST_F(UserActivations, OfOneForwardServeTwoBackwards) {
  const ActivationsOnDisk disk({.folders = {"."}, .bytes = 64 << 20});
  auto net = images();
  at::Tensor loss;
  {
    const auto saving = disk.forward(held_by(*net));
    loss = loss_of(net->forward(x_));
  }
  loss.backward({}, /*retain_graph=*/true);
  net->zero_grad();
  loss.backward();
  expect_same(gradients(*net), want_);
}

TEST_F(UserActivations, AFolderThatIsMissingIsRefused) {
  try {
    ActivationsOnDisk({.folders = {"./missing"}, .bytes = 4096});
    ADD_FAILURE() << "no folder";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("activations.folders"), std::string::npos) << error.what();
  }
}

std::vector<at::Tensor> pipelined(const char* schedule, bool moves, int64_t& written) {
  std::vector<at::Tensor> all(16);
  LayerList layers;
  torch::manual_seed(5);
  for (int i = 0; i < 4; ++i) layers.add(Linear(64, 64)).add(torch::nn::Tanh());
  const at::Tensor x = torch::randn({4 * 64, 64});
  run_ranks(2, [&](Communicator& pipe) {
    const ActivationsOnDisk disk({.folders = {"."}, .bytes = 64 << 20});
    ModulePipeline pipeline(
        layers, pipe,
        {.schedule = make_schedule(schedule, {.ranks = 2, .microbatches = 4}),
         .loss = [](const at::Tensor& y, const at::Tensor& target) { return (y - target).square().mean(); },
         .activations = moves ? &disk : nullptr});
    pipeline.step({x}, {x});
    if (pipe.rank() == 0) written = disk.bytes_written();
  });
  std::vector<at::Tensor> gradients;
  for (int i = 0; i < layers.size(); ++i) {
    for (const at::Tensor& parameter : layers[i].module->parameters()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

TEST_F(UserActivations, OfAPipelineHaveTheBitsOfMemory) {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {
    SCOPED_TRACE(schedule);
    int64_t none = 0, written = 0;
    expect_same(pipelined(schedule, true, written), pipelined(schedule, false, none));
    EXPECT_EQ(written, 4 * 2 * 64 * 64 * 4) << "outputs of two Tanh, of four microbatches";
    EXPECT_EQ(none, 0);
  }
}

}  // namespace
}  // namespace braid::activations_on_disk_test
