// The layouts of small runs, which can be counted.
#include "braid/plan/layout_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace braid::plan::layout_space_test {
namespace {

SpaceRequest request(int64_t num_devices) {
  SpaceRequest asked{.num_devices = num_devices, .devices_per_node = 4};
  asked.run.model = {.layers = 4, .heads = 2, .width = 64, .context = 64, .vocab = 257};
  asked.run.train.batch = 4;
  return asked;
}

std::set<int> values(const std::vector<LayoutPoint>& layouts, int LayoutPoint::*key) {
  std::set<int> all;
  for (const LayoutPoint& layout : layouts) all.insert(layout.*key);
  return all;
}

TEST(LayoutSpace, OfOneDeviceHasMicrobatchesAndPolicies) {
  const std::vector<LayoutPoint> layouts = layout_space(request(1));
  EXPECT_EQ(layouts.size(), 3u * 4);  // 1, 2, 4 sequences; none, by stage, selective, full
  EXPECT_EQ(values(layouts, &LayoutPoint::microbatch), (std::set{1, 2, 4}));
  for (const LayoutPoint& layout : layouts) EXPECT_EQ(layout.schedule->name, "1f1b");
}

TEST(LayoutSpace, TakesAllDevicesOnce) {
  const std::vector<LayoutPoint> layouts = layout_space(request(8));
  std::set<std::pair<int, int>> meshes;
  for (const LayoutPoint& layout : layouts) {
    EXPECT_EQ(layout.pipe * layout.data * layout.tensor, 8);
    EXPECT_EQ(4 % layout.data, 0);
    EXPECT_EQ(4 / layout.data % layout.microbatch, 0);
    EXPECT_TRUE(layout.data > 1 || layout.zero == 0);
    meshes.emplace(layout.pipe, layout.tensor);
  }
  // Two heads, so two tensor ranks at most; four layers, so four stages; four sequences, so four data ranks.
  EXPECT_EQ(meshes, (std::set<std::pair<int, int>>{{1, 2}, {2, 1}, {2, 2}, {4, 1}, {4, 2}}));
  for (size_t i = 0; i < layouts.size(); i += 7) EXPECT_EQ(std::ranges::count(layouts, layouts[i]), 1) << i;
}

// Two tensor ranks have half of the features of two heads each.
TEST(LayoutSpace, TensorRanksHaveWholeBlocksOfStatesInCodes) {
  SpaceRequest asked = request(2);
  EXPECT_EQ(values(layout_space(asked), &LayoutPoint::tensor), (std::set{1, 2}));
  asked.run.optimizer.state_dtype = StateType::Int8;
  EXPECT_EQ(values(layout_space(asked), &LayoutPoint::tensor), std::set{1});
  asked.run.model.width = 128;
  EXPECT_EQ(values(layout_space(asked), &LayoutPoint::tensor), (std::set{1, 2}));
}

TEST(LayoutSpace, EachStageOfAnEvenCutHasABlock) {
  SpaceRequest asked = request(4);
  asked.run.pipeline.schedule = "interleaved";
  asked.run.pipeline.chunks = 3;
  asked.pinned = {"pipeline.schedule", "pipeline.chunks"};
  const std::vector<LayoutPoint> layouts = layout_space(asked);
  EXPECT_EQ(values(layouts, &LayoutPoint::pipe), std::set{1});  // two ranks of three stages have no four blocks
}

TEST(LayoutSpace, LayoutsOfTheSameWorkAreNeighbours) {
  const std::vector<LayoutPoint> layouts = layout_space(request(8));
  std::vector<LayoutPoint> works;
  for (const LayoutPoint& layout : layouts) {
    if (!works.empty() && same_work(works.back(), layout)) continue;
    for (const LayoutPoint& earlier : works) EXPECT_FALSE(same_work(earlier, layout));
    works.push_back(layout);
  }
  EXPECT_GT(works.size(), 20u);
}

TEST(LayoutSpace, ShardsOnANodeWhereDataRanksAreOnSeveral) {
  SpaceRequest asked = request(8);
  asked.run.train.batch = 8;
  for (const LayoutPoint& layout : layout_space(asked)) {
    const bool near = layout.pipe == 1 && layout.tensor == 1 && layout.zero > 0;  // eight data ranks, four on a node
    EXPECT_TRUE(layout.zero_group == 0 || (near && layout.zero_group == 4) || layout.zero_group == 2);
    EXPECT_TRUE(layout.zero_group == 0 || layout.zero > 0);
  }
}

TEST(LayoutSpace, WhatIsPinnedIsAsGiven) {
  SpaceRequest asked = request(4);
  asked.run.mesh = {.pipe = 2, .data = 2};
  asked.run.pipeline.schedule = "gpipe";
  asked.run.pipeline.partition = "1,3";
  asked.run.memory.recompute = "full,none";
  asked.pinned = {"pipeline.schedule", "pipeline.partition", "memory.recompute", "sync.zero"};
  const std::vector<LayoutPoint> layouts = layout_space(asked);
  ASSERT_FALSE(layouts.empty());
  EXPECT_EQ(values(layouts, &LayoutPoint::pipe), std::set{2});  // two entries are of two stages
  for (const LayoutPoint& layout : layouts) {
    RunSpec run = asked.run;
    set_layout(run, layout);
    EXPECT_EQ(run.pipeline, asked.run.pipeline);
    EXPECT_EQ(run.memory, asked.run.memory);
    EXPECT_EQ(run.sync.zero, 0);
  }
}

TEST(LayoutSpace, SharesThatStayDivideTheBatchInTheirOwnWay) {
  SpaceRequest asked = request(3);
  asked.run.train.batch = 16;  // which three equal shares do not divide
  asked.run.mesh.data = 3;
  asked.run.mesh.batch_shares = "2,1,1";
  asked.pinned = {"mesh.batch_shares"};
  const std::vector<LayoutPoint> layouts = layout_space(asked);
  EXPECT_EQ(values(layouts, &LayoutPoint::data), std::set{3});
  EXPECT_EQ(values(layouts, &LayoutPoint::microbatch), (std::set{1, 2, 4}));
  asked.pinned = {"mesh.data"};
  EXPECT_TRUE(layout_space(asked).empty());
}

TEST(LayoutSpace, LeavesOutDevicesThatOtherAxesTake) {
  SpaceRequest asked = request(4);
  asked.run.mesh.context = 2;
  asked.pinned = {"mesh.context"};
  for (const LayoutPoint& layout : layout_space(asked)) EXPECT_EQ(layout.pipe * layout.data * layout.tensor, 2);
  asked.run.mesh.context = 3;
  EXPECT_TRUE(layout_space(asked).empty());
}

std::set<std::pair<int, ContextParallel>> contexts(const SpaceRequest& asked) {
  std::set<std::pair<int, ContextParallel>> all;
  for (const LayoutPoint& layout : layout_space(asked)) {
    EXPECT_EQ(layout.pipe * layout.data * layout.context * layout.tensor, asked.num_devices);
    all.emplace(layout.context, layout.form);
  }
  return all;
}

TEST(LayoutSpace, SharesLongSequencesOnCpus) {
  using enum ContextParallel;
  SpaceRequest asked = request(8);
  asked.run.model.context = 4 * kFewestContextTokens;
  asked.run.mesh.context = 2;
  EXPECT_EQ(contexts(asked), (std::set{std::pair{1, Ring}}));
  asked.on_cpus = true;
  EXPECT_EQ(contexts(asked), (std::set{std::pair{1, Ring}, {2, Ring}, {2, Ulysses}, {4, Ring}, {4, Ulysses}}));
  asked.run.mesh.context_parallel = AllGather;
  asked.pinned = {"mesh.context"};
  EXPECT_EQ(contexts(asked), (std::set{std::pair{2, Ring}, {2, AllGather}, {2, Ulysses}}));
  asked.pinned = {"mesh.context_parallel"};
  EXPECT_EQ(contexts(asked), (std::set{std::pair{1, AllGather}, {2, AllGather}, {4, AllGather}}));
}

TEST(LayoutSpace, SharesShortSequencesAsTheRunDoes) {
  using enum ContextParallel;
  SpaceRequest asked = request(8);
  asked.on_cpus = true;
  EXPECT_EQ(contexts(asked), (std::set{std::pair{1, Ring}}));
  asked.run.mesh.context = 4;
  EXPECT_EQ(contexts(asked), (std::set{std::pair{1, Ring}, {4, Ring}, {4, Ulysses}}));
  asked.run.mesh.context_parallel = UlyssesRing;
  asked.run.mesh.ulysses_ranks = 2;
  EXPECT_EQ(contexts(asked), (std::set{std::pair{4, UlyssesRing}}));
}

std::set<std::pair<int, bool>> token_splits(const SpaceRequest& asked) {
  std::set<std::pair<int, bool>> all;
  for (const LayoutPoint& layout : layout_space(asked)) all.emplace(layout.tensor, layout.sequence_parallel);
  return all;
}

TEST(LayoutSpace, SplitsTokensOnTensorRanks) {
  SpaceRequest asked = request(4);
  EXPECT_EQ(token_splits(asked), (std::set{std::pair{1, false}, {2, false}, {2, true}}));
  asked.run.mesh.sequence_parallel = true;
  asked.pinned = {"mesh.sequence_parallel"};
  EXPECT_EQ(token_splits(asked), (std::set{std::pair{2, true}}));
  asked.pinned = {};
  asked.run.model.context = 63;
  EXPECT_EQ(token_splits(asked), (std::set{std::pair{1, false}, {2, false}}));
}

TEST(LayoutSpace, ExpertRanksShareTheBatch) {
  SpaceRequest asked = request(8);
  asked.run.mesh.expert = 2;
  const std::vector<LayoutPoint> layouts = layout_space(asked);
  ASSERT_FALSE(layouts.empty());
  for (const LayoutPoint& layout : layouts) {
    EXPECT_EQ(asked.run.train.batch % (layout.data * 2 * layout.microbatch), 0);
  }
}

}  // namespace
}  // namespace braid::plan::layout_space_test
