// Data and model parallelism beside each other, whatever else the run says.
#include "braid/predict/parallelism_table.h"

#include <gtest/gtest.h>

#include "braid/cluster/cluster_presets.h"

namespace braid::parallelism_table_test {
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

}  // namespace
}  // namespace braid::parallelism_table_test
