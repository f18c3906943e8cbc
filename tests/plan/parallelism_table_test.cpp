// Data and model parallelism beside each other, whatever else the run says.
#include "braid/plan/parallelism_table.h"

#include <gtest/gtest.h>

#include "braid/plan/cluster_presets.h"

namespace braid::plan::parallelism_table_test {
namespace {

RunSpec small() {
  RunSpec run;
  run.model = {.layers = 4, .heads = 4, .width = 256, .context = 128, .vocab = 1024};
  run.train.batch = 16;
  run.data.paths = {"text"};
  return run;
}

std::vector<ParallelismRow> rows(const RunSpec& run) {
  return parallelism_table(run, cluster_preset("dgx-a100-80gb").value(), 2);
}

TEST(ParallelismTable, WhatTheRunSaysOfItsStagesHoldsForNoOtherNumberOfThem) {
  RunSpec run = small();
  run.mesh.pipe = 2;
  run.memory.recompute = "full,none";
  for (const ParallelismRow& row : rows(run)) EXPECT_TRUE(row.possible) << row.name;
}

TEST(ParallelismTable, GradientsOfFloat64AreTwiceAsLarge) {
  RunSpec run = small();
  const double single = rows(run)[0].sent_bytes;
  EXPECT_NEAR(single, 4.0 * 3.45e6, 0.1 * single);  // 12 h^2 of each block and two tables
  run.train.dtype = DType::Float64;
  EXPECT_FALSE(rows(run)[0].possible);  // nobody says how fast
  EXPECT_EQ(rows(run)[0].sent_bytes, 2 * single);
}

// A step sends trained weights twice and their gradients once. The frozen half is sent once, for the forward.
TEST(ParallelismTable, FrozenWeightsAreGatheredToo) {
  RunSpec run = small();
  run.model.output_weights = OutputWeights::Untied;
  const double trained = rows(run)[1].sent_bytes;
  run.optimizer.groups = {{.match = "w?e.*", .frozen = true}, {.match = "blocks.[01].*", .frozen = true}};
  const double block = 12.0 * 256 * 256, table = 1024.0 * 256, positions = 128.0 * 256;
  const double all = 4 * block + 2 * table + positions, frozen = 2 * block + table + positions;
  EXPECT_NEAR(rows(run)[1].sent_bytes / trained, 1 - 2 * frozen / (3 * all), 0.01);
}

// Eight experts of 8 h^2 in each block on two ranks, each with half of the batch: its tokens go to two experts and come
// back, there and back again for gradients; the other parameters' gradients are summed.
TEST(ParallelismTable, ExpertsHaveARowWhereThereAreAny) {
  RunSpec run = small();
  EXPECT_EQ(rows(run).size(), 4u);
  run.model.experts = 8;
  run.model.experts_per_token = 2;
  const ParallelismRow row = rows(run).back();
  EXPECT_EQ(row.name, "expert");
  EXPECT_TRUE(row.possible);
  const double routed = 4 * 4 * 2 * 4.0 * (16 * 128 / 2) * 256;
  const double others = 4 * (4.0 * 256 * 256 + 8 * 256) + (1024 + 128) * 256;  // two norms, biases, routers; tables
  EXPECT_NEAR(row.sent_bytes, routed / 2 + 2 * 4.0 * others / 2, 0.02 * row.sent_bytes);
  EXPECT_GT(row.prediction.seconds.context, 0);
}

}  // namespace
}  // namespace braid::plan::parallelism_table_test
