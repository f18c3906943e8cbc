// Cuts, skips and their faults, on layers that are plain functions.
#include "braid/module/stage_plan.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "braid/module/layer_facts.h"
#include "braid/module/layer_stage.h"
#include "braid/module/minibatch_split.h"
#include "braid/param/rank_generator.h"

namespace braid::modules::stage_plan_test {
namespace {

at::Tensor same(const at::Tensor& x) { return x; }

LayerList named(const std::vector<std::string>& names) {
  LayerList layers;
  for (const auto& name : names) layers.add(name, same);
  return layers;
}

std::vector<std::string> texts(const std::vector<Problem>& problems) {
  std::vector<std::string> lines;
  for (const auto& problem : problems) lines.push_back(braid::text(problem));
  return lines;
}

std::vector<std::string> faults(const LayerList& layers, int num_stages, const std::vector<int>& balance = {}) {
  std::vector<Problem> problems;
  EXPECT_TRUE(plan_stages(layers, num_stages, balance, problems).empty());
  return texts(problems);
}

TEST(StagePlan, LayersAreSpreadEvenlyFirstOnesFirst) {
  std::vector<Problem> problems;
  const auto plan = plan_stages(named({"a", "b", "c", "d", "e"}), 3, {}, problems);
  EXPECT_EQ(plan, (std::vector<StagePlan>{{0, 2}, {2, 4}, {4, 5}}));
  EXPECT_EQ(plan_stages(named({"a", "b", "c"}), 2, {1, 2}, problems), (std::vector<StagePlan>{{0, 1}, {1, 3}}));
  EXPECT_TRUE(problems.empty());
}

TEST(StagePlan, SkipsAreCarriedOverEveryBorderBetween) {
  LayerList layers;
  layers.add("0", same, {.stash = {"a"}}).add("1", same, {.stash = {"b"}}).add("2", same, {.pop = {"b"}});
  layers.add("3", same, {.pop = {"a"}});
  std::vector<Problem> problems;
  const auto plan = plan_stages(layers, 4, {}, problems);
  const std::vector<StagePlan> expected{
      {0, 1, {}, {"a"}}, {1, 2, {"a"}, {"a", "b"}}, {2, 3, {"a", "b"}, {"a"}}, {3, 4, {"a"}, {}}};
  EXPECT_EQ(plan, expected);
}

TEST(StagePlan, EveryFaultOfSkipsAndNamesIsToldAtOnce) {
  LayerList layers;
  layers.add("in", same, {.stash = {"twice", "never"}, .pop = {"late"}});
  layers.add("mid", same, {.stash = {"twice", "late"}, .pop = {"missing"}});
  layers.add("mid", same, {.pop = {"twice"}}).add("out", same, {.pop = {"twice", "late"}});
  const std::vector<std::string> expected{
      "layers.mid: is the name of layers 1 and 2",
      "layers.in.pop = late: is popped before it is stashed",
      "layers.mid.pop = missing: is never stashed",
      "layers.mid.stash = twice: is stashed already, by layer in",
      "layers.out.pop = twice: is popped already, by layer mid",
      "layers.in.stash = never: is never popped",
  };
  EXPECT_EQ(faults(layers, 2), expected);
}

TEST(StagePlan, FaultsOfTheBalance) {
  const auto layers = named({"a", "b", "c"});
  EXPECT_EQ(faults(layers, 2, {3, 0, 1}),
            (std::vector<std::string>{
                "balance = 3, 0, 1: must have one number per stage of the schedule (2); nearest valid is 2, 1",
                "balance = 3, 0, 1: must give every stage a layer; nearest valid is 2, 1",
                "balance = 3, 0, 1: must add up to the number of layers (3), not 4; nearest valid is 2, 1"}));
  EXPECT_EQ(faults(layers, 4), (std::vector<std::string>{"layers = 3: must be at least the schedule's stages (4)"}));
}

TEST(StagePlan, AParameterOfTwoRanksIsRefused) {
  const at::Tensor weight = at::ones({2});
  LayerList layers;
  layers.add("a", same, {.parameters = {weight}}).add("b", same, {.parameters = {weight}});
  Schedule schedule{"two", 2, 1, {0, 1}, {{}, {}}};
  const std::vector<StagePlan> plan{{0, 1}, {1, 2}};
  EXPECT_EQ(
      texts(sharing_problems(layers, plan, schedule, RankKind::Process)),
      (std::vector<std::string>{"layers.b: shares a parameter with layer a of rank 0, which must be on the same rank "
                                "as this one (1)"}));
  schedule.stage_rank = {1, 1};
  EXPECT_TRUE(sharing_problems(layers, plan, schedule, RankKind::Process).empty());
}

TEST(StagePlan, LayersHaveOnePipelineAtATime) {
  const auto layers = named({"a", "b"});
  {
    const LayerClaim first(layers, {{0, 1}});
    EXPECT_NO_THROW(LayerClaim(layers, {{1, 2}}));
    EXPECT_THROW(LayerClaim(layers, {{0, 2}}), ConfigError);
    EXPECT_NO_THROW(LayerClaim(layers, {{1, 2}}));
  }
  EXPECT_NO_THROW(LayerClaim(layers, {{0, 2}}));
}

TEST(LayerList, WhatALayerTakesAndGives) {
  LayerList layers;
  layers.add("list", [](const Tensors& x) { return Tensors(x.rbegin(), x.rend()); });
  layers.add("tuple", [](at::Tensor a, at::Tensor b) { return std::make_tuple(b, a, a + b); });
  layers.add("pair", [](at::Tensor a, at::Tensor b, at::Tensor c) { return std::pair(a + c, b); });
  layers.add("one", [](const at::Tensor& a, const at::Tensor& b) { return a * 10 + b; });
  Tensors flow{at::ones({}), at::ones({}) * 2};
  for (int i = 0; i < layers.size(); ++i) flow = layers[i].forward(flow);
  EXPECT_EQ(flow.at(0).item<double>(), 42);  // (1, 2) (2, 1) (1, 2, 3) (4, 2)
  EXPECT_THROW(layers[3].forward({flow[0]}), ConfigError);
}

TEST(LayerList, StashKeepsWhatFlows) {
  LayerList layers;
  layers.stash("x");
  EXPECT_EQ(layers[0].options.stash, std::vector<std::string>{"x"});
  EXPECT_EQ(layers[0].forward({at::ones({2})}).size(), 2u);
}

TEST(LayerStage, ALayerThatStashesMoreThanItGivesIsNamed) {
  LayerList layers;
  layers.add("poor", same, {.stash = {"a", "b"}}).add("out", same, {.pop = {"a", "b"}});
  const LayerStage stage(layers, {0, 1, {}, {"a", "b"}}, 0, RankKind::Thread);
  try {
    stage.forward({at::ones({1})}, ForwardPurpose::Training);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "layer poor of stage 0: stash = a, b: needs one tensor each, and the layer gave 1");
  }
}

TEST(MinibatchSplit, RowsAreSharedOutInOrder) {
  for (const int64_t rows : {7, 8, 12}) {
    const MinibatchSplit split{rows, 4};
    int64_t next = 0;
    for (int micro = 0; micro < 4; ++micro) {
      EXPECT_EQ(split.begin(micro), next);
      EXPECT_EQ(split.size(micro), split.size(split.first_of_kind(split.kind(micro))));
      next += split.size(micro);
    }
    EXPECT_EQ(next, rows);
    EXPECT_EQ(split.num_kinds(), rows % 4 == 0 ? 1 : 2);
  }
}

std::vector<std::string> drawn(const std::function<void()>& work) {
  const RandomDrawWatch watch;
  work();
  return watch.operations();
}

TEST(RandomDrawWatch, DrawsOfTheProcessesGeneratorAreNamed) {
  const at::Tensor x = at::ones({2, 1, 4, 8});
  EXPECT_EQ(drawn([&] { at::dropout(x, 0.5, true); }), std::vector<std::string>{"aten::bernoulli_"});
  EXPECT_EQ(drawn([&] { at::rand({2}); }).at(0), "aten::rand");
  EXPECT_FALSE(drawn([&] { at::scaled_dot_product_attention(x, x, x, {}, 0.5); }).empty());
}

TEST(RandomDrawWatch, OthersAreNot) {
  const at::Tensor x = at::ones({2, 1, 4, 8});
  param::RankGenerator own;
  EXPECT_TRUE(drawn([&] { at::dropout(x, 0.5, false); }).empty());
  EXPECT_TRUE(drawn([&] { at::scaled_dot_product_attention(x, x, x); }).empty());
  EXPECT_TRUE(drawn([&] { x.clone().bernoulli_(0.5, own.at_key(1)); }).empty());
  const RandomDrawWatch outer;
  EXPECT_FALSE(drawn([&] { at::rand({2}); }).empty());
  EXPECT_TRUE(outer.operations().empty()) << "an inner watch takes what happens within";
}

}  // namespace
}  // namespace braid::modules::stage_plan_test
