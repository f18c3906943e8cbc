// Stages whose first layers work in place on what they receive train and evaluate as on one rank, bit for bit.
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace braid::modules::in_place_layers_test {
namespace {

using torch::nn::Linear;

constexpr int kMicrobatches = 4, kRowsOfEach = 4;

struct Model {
  Linear fc0{5, 8}, fc1{8, 8}, head{8, 3};

  Model() {
    torch::manual_seed(11);
    for (auto& parameter : parameters()) parameter.set_data(at::randn(parameter.sizes(), at::kDouble));
  }
  Tensors parameters() const {
    Tensors all;
    for (const Linear& linear : {fc0, fc1, head}) {
      for (auto& parameter : linear->parameters()) all.push_back(parameter);
    }
    return all;
  }
  // Two layers of each stage. The backward of tanh needs what the next stage overwrites.
  LayerList layers() const {
    LayerList list;
    list.add("fc0", fc0).add("keep", [](at::Tensor x) { return std::pair(x * 2, x.sin()); }, {.stash = {"skip"}});
    list.add("relu", [](at::Tensor x) { return x.relu_(); }).add("tanh", [](at::Tensor x) { return x.tanh(); });
    list.add("double", [](at::Tensor x) { return x.mul_(2); }).add("fc1", fc1);
    list.add("join", [](at::Tensor x, at::Tensor skip) { return skip.add_(x); }, {.pop = {"skip"}}).add("head", head);
    return list;
  }
  at::Tensor serial(const at::Tensor& x) const {
    Linear first = fc0, second = fc1, last = head;
    const at::Tensor y = first(x), skip = y.sin();
    return last(skip.clone().add_(second((y * 2).relu_().tanh().clone().mul_(2))));
  }
};

at::Tensor loss_of(const at::Tensor& output, const at::Tensor& target) { return (output - target).square().mean(); }

void expect_as_on_one_rank(const Schedule& schedule, const std::vector<int>& balance) {
  torch::manual_seed(5);
  const at::Tensor x = at::randn({kMicrobatches * kRowsOfEach, 5}, at::kDouble);
  const at::Tensor y = at::randn({kMicrobatches * kRowsOfEach, 3}, at::kDouble);
  const Model expected, found;
  double expected_loss = 0;
  for (int micro = 0; micro < kMicrobatches; ++micro) {
    const auto part = [&](const at::Tensor& whole) {
      return whole.narrow(0, micro * kRowsOfEach, kRowsOfEach).clone();
    };
    const at::Tensor loss = loss_of(expected.serial(part(x)), part(y)).mul(1.0 / kMicrobatches);
    loss.backward();
    expected_loss += loss.item<double>();
  }
  at::Tensor outputs;
  run_ranks(schedule.num_ranks(), [&](Communicator& pipe) {
    ModulePipeline pipeline(found.layers(), pipe, {.schedule = schedule, .loss = loss_of, .balance = balance});
    const auto loss = pipeline.step({x}, {y});
    if (loss) {
      EXPECT_EQ(*loss, expected_loss);
    }
    const Tensors evaluated = pipeline.forward({x});
    if (!evaluated.empty()) outputs = evaluated[0];
  });
  const Tensors a = found.parameters(), b = expected.parameters();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i].grad(), b[i].grad())) << i;
  Tensors parts;
  for (int micro = 0; micro < kMicrobatches; ++micro) {
    parts.push_back(expected.serial(x.narrow(0, micro * kRowsOfEach, kRowsOfEach).clone()).detach());
  }
  EXPECT_TRUE(at::equal(outputs, at::cat(parts))) << (outputs - at::cat(parts)).abs().max().item<double>();
}

TEST(InPlaceLayers, AStageMayBeginWithOne) {
  for (const char* name : {"gpipe", "1f1b", "zb-h1"}) {
    SCOPED_TRACE(name);
    expect_as_on_one_rank(make_schedule(name, {.ranks = 4, .microbatches = kMicrobatches}), {2, 2, 2, 2});
  }
}

TEST(InPlaceLayers, WhatIsHandedOverOnARankIsNotWritten) {
  const Schedule schedule = make_schedule("zb-v", {.ranks = 2, .microbatches = kMicrobatches});
  ASSERT_EQ(schedule.stage_rank, (std::vector<int>{0, 1, 1, 0}));
  expect_as_on_one_rank(schedule, {2, 2, 2, 2});
  expect_as_on_one_rank(schedule, {2, 2, 1, 3});
}

// As it was reported: a linear layer, one in place, a linear layer.
TEST(InPlaceLayers, TheSecondOfTwoStages) {
  const Linear first(4, 4), second(4, 2);
  const Linear same_first(4, 4), same_second(4, 2);
  const auto copy = [](const Linear& from, const Linear& to) {
    for (size_t i = 0; i < 2; ++i) to->parameters()[i].set_data(from->parameters()[i].detach().clone());
  };
  copy(first, same_first), copy(second, same_second);
  const at::Tensor x = at::randn({4, 4}), y = at::randn({4, 2});
  LayerList layers;
  layers.add(first).add([](at::Tensor t) { return t.relu_(); }).add(second);
  run_ranks(2, [&](Communicator& pipe) {
    const Schedule schedule = make_schedule("1f1b", {.ranks = 2, .microbatches = 1});
    ModulePipeline(layers, pipe, {.schedule = schedule, .loss = loss_of, .balance = {1, 2}}).step({x}, {y});
  });
  loss_of(Linear(same_second)(Linear(same_first)(x).relu_()), y).backward();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(at::equal(first->parameters()[i].grad(), same_first->parameters()[i].grad()));
    EXPECT_TRUE(at::equal(second->parameters()[i].grad(), same_second->parameters()[i].grad()));
  }
}

}  // namespace
}  // namespace braid::modules::in_place_layers_test
