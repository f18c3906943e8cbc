// The cost of a cluster's failures and disks for a run, counted by hand.
#include <gtest/gtest.h>

#include "braid/plan/goodput.h"

namespace braid::plan::checkpoint_cost_test {
namespace {

constexpr double kWidth = 64;
// Embedding, positions, two blocks, the last norm; 4 bytes of master and 8 of moments each.
constexpr double kSaved = 12 * (1024 * kWidth + 256 * kWidth + 2 * (12 * kWidth * kWidth + 13 * kWidth) + 2 * kWidth);

RunSpec gpt2() {
  RunSpec run;
  run.model = {.layers = 2, .heads = 2, .width = 64, .context = 256, .vocab = 1024};
  run.mesh.data = 2;
  run.mesh.tensor = 2;
  run.checkpoint.async = false;
  return run;
}

Cluster two_nodes() {
  return {.name = "two nodes",
          .devices = {{.per_node = 2, .nodes = 2, .memory_bytes = 1e9, .memory_bytes_per_second = 1e10}},
          .node = {1e9, 1e-6},
          .network = {1e8, 1e-5},
          .disk = {2e6, 1e6},
          .failures = {1000, 30}};
}

TEST(FailureModel, CountsAllRanksAndWritesOnAllNodes) {
  const FailureModel model = failure_model(gpt2(), two_nodes());
  EXPECT_EQ(model.mean_between, 250);
  EXPECT_EQ(model.restart, 30);
  EXPECT_DOUBLE_EQ(model.stall, kSaved / 2 / 1e6);
}

TEST(FailureModel, WritesMomentsInTheirType) {
  RunSpec run = gpt2();
  run.optimizer.state_dtype = StateType::BFloat16;
  EXPECT_DOUBLE_EQ(failure_model(run, two_nodes()).stall, kSaved * 8 / 12 / 2 / 1e6);
}

// Three nodes of one rank and one of three: that one writes half of the model.
TEST(FailureModel, WaitsForTheNodeThatWritesMost) {
  Cluster cluster = two_nodes();
  cluster.devices.push_back(cluster.devices.front());
  cluster.devices[0].per_node = 1;
  cluster.devices[0].nodes = 3;
  cluster.devices[1].per_node = 3;
  cluster.devices[1].nodes = 1;
  RunSpec run = gpt2();
  run.mesh.data = 3;
  EXPECT_DOUBLE_EQ(failure_model(run, cluster).stall, kSaved / 2 / 1e6);
}

TEST(FailureModel, SavesMastersWhateverTheTypeOfTheRun) {
  RunSpec run = gpt2();
  run.train.dtype = DType::BFloat16;
  EXPECT_DOUBLE_EQ(failure_model(run, two_nodes()).stall, kSaved / 2 / 1e6);
  run.train.dtype = DType::Float64;
  EXPECT_DOUBLE_EQ(failure_model(run, two_nodes()).stall, 2 * kSaved / 2 / 1e6);
}

TEST(FailureModel, WaitsForACopyInMemoryWhereSavesGoOnBehind) {
  RunSpec run = gpt2();
  run.checkpoint.async = true;
  EXPECT_DOUBLE_EQ(failure_model(run, two_nodes()).stall, 2 * kSaved / 4 / 1e10);
}

TEST(FailureModel, ASaveCostsSomethingHoweverLittleItWrites) {
  Cluster cluster = two_nodes();
  cluster.disk.save_seconds = 5;
  RunSpec run = gpt2();
  EXPECT_DOUBLE_EQ(failure_model(run, cluster).stall, 5 + kSaved / 2 / 1e6);
  run.checkpoint.async = true;
  const FailureModel behind = failure_model(run, cluster);
  EXPECT_DOUBLE_EQ(behind.stall, 5 + 2 * kSaved / 4 / 1e10);
  EXPECT_DOUBLE_EQ(behind.save, 5 + kSaved / 2 / 1e6);
}

// A save in the background is not begun before the last one is complete.
TEST(FailureModel, SavesDoNotOverlap) {
  EXPECT_EQ(save_interval({.mean_between = 1000, .stall = 0.001, .save = 30}), 30);
  const FailureModel rare{.mean_between = 1e6, .stall = 5, .save = 30};
  EXPECT_EQ(save_interval(rare), daly_interval(rare));
}

TEST(FailureModel, NothingFailsAndNothingIsSavedWhereTheClusterDoesNotSay) {
  Cluster cluster = two_nodes();
  cluster.disk = {};
  cluster.failures = {};
  const FailureModel model = failure_model(gpt2(), cluster);
  EXPECT_EQ(model.mean_between, 0);
  EXPECT_EQ(model.stall, 0);
}

}  // namespace
}  // namespace braid::plan::checkpoint_cost_test
