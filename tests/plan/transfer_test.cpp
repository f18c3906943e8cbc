// Transfers between stages, as they show in a prediction.
#include <gtest/gtest.h>

#include "braid/plan/predict_run.h"
#include "tests/plan/a100_runs.h"

namespace braid::plan::transfer_test {
namespace {

RunSpec pipeline_of(int ranks) {
  RunSpec run;
  run.model.layers = 32;
  run.model.heads = 16;
  run.model.width = 2048;
  run.model.context = 1024;
  run.model.vocab = 32000;
  run.mesh.pipe = ranks;
  run.train.batch = 32;
  run.train.microbatch = 1;
  run.train.dtype = DType::BFloat16;
  return run;
}

double step_seconds(const RunSpec& run, const Cluster& cluster, FormulaSet formulas) {
  return predict_run(run, cluster, {formulas}).step_seconds();
}

TEST(Transfer, OnlyStagesOfTwoNodesUseTheNetwork) {
  for (const FormulaSet formulas : {FormulaSet::Braid, FormulaSet::Megatron}) {
    Cluster one = a100_nodes(1), two = a100_nodes(2);
    const double near = step_seconds(pipeline_of(8), one, formulas), far = step_seconds(pipeline_of(16), two, formulas);
    one.network.bytes_per_second /= 100;
    two.network.bytes_per_second /= 100;
    EXPECT_EQ(step_seconds(pipeline_of(8), one, formulas), near);
    EXPECT_GT(step_seconds(pipeline_of(16), two, formulas), 1.1 * far);
  }
}

// Among the ranks of two nodes one pair has the network between it; all of them would wait for it if it were
// everywhere.
TEST(Transfer, RanksOfMegatronWaitForWhatTheySendAndReceiveThemselves) {
  Cluster two = a100_nodes(2), single = a100_nodes(16);
  single.devices.front().per_node = 1;
  for (Cluster* cluster : {&two, &single}) cluster->network = {1e9, 1e-6};
  const RunSpec run = pipeline_of(16);
  EXPECT_LT(1.1 * step_seconds(run, two, FormulaSet::Megatron), step_seconds(run, single, FormulaSet::Megatron));
}

// A microbatch more takes four more transfers of a middle rank.
TEST(Transfer, EveryMicrobatchWaitsForItsFour) {
  Cluster slow = a100_nodes(1);
  slow.node.bytes_per_second = 2 * 1024 * 2048 / 0.5;  // half a second each
  RunSpec run = pipeline_of(8);
  for (const char* schedule : {"1f1b", "zb-h2"}) {
    run.pipeline.schedule = schedule;
    run.train.batch = 64;
    const double before = step_seconds(run, slow, FormulaSet::Megatron);
    run.train.batch = 65;
    EXPECT_GT(step_seconds(run, slow, FormulaSet::Megatron) - before, 4 * 0.5) << schedule;
  }
}

}  // namespace
}  // namespace braid::plan::transfer_test
