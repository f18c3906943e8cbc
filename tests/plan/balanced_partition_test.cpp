// Balanced cuts beside even ones, as they are predicted.
#include "braid/plan/balanced_partition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/plan/block_work.h"
#include "braid/plan/cluster_file.h"
#include "braid/plan/predict_run.h"
#include "braid/spec/partition.h"

namespace braid::plan::balanced_partition_test {
namespace {

RunSpec gpt2(const char* schedule) {
  RunSpec run;
  run.model = {.layers = 24, .heads = 16, .width = 1024, .context = 1024, .vocab = 50257};
  run.train.batch = 64;
  run.train.microbatch = 1;
  run.train.dtype = DType::BFloat16;
  run.mesh.pipe = 4;
  run.pipeline.schedule = schedule;
  return run;
}

double seconds(RunSpec run, const Cluster& cluster, const std::string& partition) {
  run.pipeline.partition = partition;
  return predict_run(run, cluster).step_seconds();
}

// The head is worth four blocks.
TEST(BalancedPartition, HasFewerBlocksBesideTheHead) {
  const Cluster cluster = with_nodes(load_cluster("dgx-a100-80gb", ""), 1, "");
  for (const char* schedule : {"1f1b", "interleaved", "zb-v", "dualpipe"}) {
    const RunSpec run = gpt2(schedule);
    const std::string partition = balanced_partition(run, cluster, FormulaSet::Braid);
    ASSERT_NE(partition, "even") << schedule;
    EXPECT_LT(seconds(run, cluster, partition), 0.95 * seconds(run, cluster, "even")) << schedule << " " << partition;
  }
  const auto blocks = spec::partition_list(balanced_partition(gpt2("1f1b"), cluster, FormulaSet::Braid)).value();
  EXPECT_LT(blocks.back(), blocks[1] - 2);
}

// In a long sequence, a layer without a window costs more than one with it, so the last two stages hold fewer blocks.
TEST(BalancedPartition, CountsEachKindOfLayer) {
  const Cluster cluster = with_nodes(load_cluster("dgx-a100-80gb", ""), 1, "");
  RunSpec run = gpt2("1f1b");
  run.model = {.family = ModelFamily::Gemma2,
               .layers = 8,
               .heads = 8,
               .kv_heads = 4,
               .width = 1024,
               .window = 256,
               .ffn = 1024,
               .context = 65536,
               .vocab = 64};
  run.mesh.pipe = 4;
  const auto layout = layout_of(run, cluster, FormulaSet::Braid);
  ASSERT_EQ(layout.account->num_kinds(), 2u);
  const PartWork windowed = part_work(run, layout, 0, FormulaSet::Braid),
                 full = part_work(run, layout, 2, FormulaSet::Braid);
  EXPECT_GT(full.forward.attention.flops, 100 * windowed.forward.attention.flops);
  EXPECT_EQ(part_work(run, layout, 1, FormulaSet::Braid).forward.products[0].flops,
            part_work(run, layout, 3, FormulaSet::Braid).forward.products[0].flops);
  for (const StageLoad& stage : layout.stages) EXPECT_EQ(stage.parts, (std::vector<double>{1, 1, 1, 1}));

  // Three stages for four layers without a window: one has two of them, whatever lies between.
  run.model.layers = 6;
  run.mesh.pipe = 3;
  run.pipeline.partition = "1,2,3";
  const auto uneven = layout_of(run, cluster, FormulaSet::Braid);
  EXPECT_EQ(uneven.stages[0].parts, (std::vector<double>{1, 1, 0, 0}));
  EXPECT_EQ(uneven.stages[1].parts, (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(uneven.stages[2].parts, (std::vector<double>{1, 1, 2, 2}));
  run.model.layers = 5;  // windows in 0, 2 and 4
  run.mesh.pipe = 2;
  run.pipeline.partition = "even";
  const std::string partition = balanced_partition(run, cluster, FormulaSet::Braid);
  EXPECT_LT(seconds(run, cluster, partition), 1.001 * seconds(run, cluster, "3,2")) << partition;
  EXPECT_LT(seconds(run, cluster, partition), 0.7 * seconds(run, cluster, "4,1")) << partition;
  EXPECT_LT(seconds(run, cluster, partition), 0.7 * seconds(run, cluster, "1,4")) << partition;
}

TEST(BalancedPartition, IsEvenWhereNothingIsFaster) {
  const Cluster cluster = with_nodes(load_cluster("dgx-a100-80gb", ""), 1, "");
  RunSpec run = gpt2("1f1b");
  run.model = {.layers = 96, .heads = 96, .width = 12288, .context = 2048, .vocab = 51200};
  EXPECT_EQ(balanced_partition(run, cluster, FormulaSet::Braid), "even");
}

TEST(BalancedPartition, IsInProportionToDevices) {
  Cluster cluster = with_nodes(load_cluster("dgx-a100-80gb", ""), 1, "");
  DeviceGroup& slow = cluster.devices.emplace_back(cluster.devices[0]);
  for (PeakRate& peak : slow.peaks) peak.flops /= 2;
  slow.memory_bytes_per_second /= 2;
  RunSpec run = gpt2("1f1b");
  run.mesh = {.pipe = 16};
  run.model.layers = 48;
  const auto blocks = spec::partition_list(balanced_partition(run, cluster, FormulaSet::Braid)).value();
  EXPECT_GE(*std::ranges::min_element(blocks.begin() + 1, blocks.begin() + 8), 4);
  EXPECT_LE(*std::ranges::max_element(blocks.begin() + 8, blocks.end()), 2.5);
}

}  // namespace
}  // namespace braid::plan::balanced_partition_test
