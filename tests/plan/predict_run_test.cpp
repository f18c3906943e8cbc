// Properties of one prediction: its parts add up, no step is shorter than its bound, and it moves the way the layout
// does.
#include "braid/plan/predict_run.h"

#include <gtest/gtest.h>

#include <utility>

#include "braid/plan/block_work.h"
#include "braid/plan/data_exchange.h"
#include "tests/plan/a100_runs.h"
#include "tests/plan/published_rows.h"

namespace braid::plan::predict_run_test {
namespace {

int64_t fullest(const Prediction& prediction) { return prediction.fullest().total(); }

TEST(PredictRun, NoStepIsShorterThanItsBound) {
  for (const auto& rows : {ptdp_rows(), korthikanti_rows(), zero_bubble_rows()}) {
    for (const PublishedRow& row : rows) {
      for (const auto formulas : {FormulaSet::Braid, FormulaSet::Megatron}) {
        const Prediction found =
            predict_run(row.run, a100_nodes((row.devices + 7) / 8), {formulas, PipelineDetail::Estimated});
        EXPECT_LT(found.bound_step_seconds, found.step_seconds()) << row.name;
        EXPECT_GT(found.bound_step_seconds, 0.2 * found.step_seconds()) << row.name;
        EXPECT_GE(found.seconds.pipeline, -1e-9) << row.name;
        EXPECT_EQ(found.memory.size(), static_cast<size_t>(row.run.mesh.pipe));
      }
    }
  }
}

// Model FLOPs alone: Korthikanti et al. 2022, table 5 prints 51.4 % for 13.75 s of 175B on 64 devices.
TEST(PredictRun, UtilisationIsOfTheModelsOperations) {
  for (const PublishedRow& row : korthikanti_rows()) {
    if (row.devices != 64 || row.run.memory.recompute == "full") continue;
    const Prediction found = predict_run(row.run, a100_nodes(8), {FormulaSet::Megatron});
    EXPECT_NEAR(found.mfu * found.step_seconds() / row.seconds, 0.514, 5e-4);
    EXPECT_NEAR(found.tokens_per_second_per_device * found.step_seconds(), 2048, 1e-9);
  }
}

TEST(PredictRun, ShardingTakesMemoryAndGivesExchanges) {
  RunSpec run = llama_7b();
  std::vector<int64_t> bytes;
  std::vector<double> seconds;
  run.sync.overlap = OverlapChoice::Off;
  for (run.sync.zero = 0; run.sync.zero <= 2; ++run.sync.zero) {
    const Prediction found = predict_run(run, a100_nodes(1));
    bytes.push_back(fullest(found));
    seconds.push_back(found.seconds.data);
  }
  EXPECT_GT(bytes[0], bytes[1]);
  EXPECT_GT(bytes[1], bytes[2]);
  EXPECT_GT(seconds[0], seconds[1]);  // weights are gathered in 16 bits, gradients summed in 32
  EXPECT_LT(seconds[1], seconds[2]);  // a sum for each of 8 microbatches
}

TEST(PredictRun, SumsHideBehindTheBackwardPass) {
  RunSpec run = llama_7b();
  const double hidden = predict_run(run, a100_nodes(1)).seconds.data;
  run.sync.overlap = OverlapChoice::Off;
  const double open = predict_run(run, a100_nodes(1)).seconds.data;
  EXPECT_NEAR(hidden, open / 32, 1e-3 * open);  // the last block's remain
}

TEST(PredictRun, ATiedWeightIsSummedOverTheEndsOfThePipeline) {
  RunSpec run = llama_7b();
  run.mesh = {.pipe = 8};
  const double table = 32000.0 * 4096 * 4;  // gradients in float32
  EXPECT_NEAR(predict_run(run, a100_nodes(1)).seconds.data, table / a100_nodes(1).node.bytes_per_second, 1e-5);
  run.model.output_weights = OutputWeights::Untied;
  EXPECT_EQ(predict_run(run, a100_nodes(1)).seconds.data, 0);
  run.model.output_weights = OutputWeights::Tied;
  run.pipeline.schedule = "zb-v";  // both ends on one rank
  EXPECT_EQ(predict_run(run, a100_nodes(1)).seconds.data, 0);
}

TEST(PredictRun, TensorRanksAcrossNodesAreSlow) {
  RunSpec run = llama_7b();
  run.mesh = {.tensor = 8};
  const double near = predict_run(run, a100_nodes(1)).seconds.tensor;
  Cluster apart = a100_nodes(8);
  apart.devices.front().per_node = 1;
  const double slower = apart.node.bytes_per_second / apart.network.bytes_per_second;
  EXPECT_GT(predict_run(run, apart).seconds.tensor, 0.8 * slower * near);
  EXPECT_GT(slower, 8);
}

TEST(PredictRun, SequenceParallelismSavesActivationsAndTime) {
  RunSpec run = llama_7b();
  run.mesh = {.tensor = 8};
  const Prediction plain = predict_run(run, a100_nodes(1));
  run.mesh.sequence_parallel = true;
  const Prediction shared = predict_run(run, a100_nodes(1));
  EXPECT_LT(shared.memory[0].activations, plain.memory[0].activations);
  EXPECT_LT(shared.seconds.compute, plain.seconds.compute);
  // An all-gather is half an all-reduce. Backward has one more for two of each part's, and small ones of gradients.
  EXPECT_GT(shared.seconds.tensor, 1.2 * plain.seconds.tensor);
  EXPECT_LT(shared.seconds.tensor, 1.3 * plain.seconds.tensor);
  const auto megatron = [&](bool splits) {
    run.mesh.sequence_parallel = splits;
    return predict_run(run, a100_nodes(1), {.formulas = FormulaSet::Megatron}).seconds.tensor;
  };
  EXPECT_EQ(megatron(true), megatron(false)) << "which overlaps that gather";
}

TEST(PredictRun, ContextRanksShareASequence) {
  RunSpec run = llama_7b();
  run.mesh = {.context = 8, .context_parallel = ContextParallel::Ulysses};
  const Prediction exchanged = predict_run(run, a100_nodes(1));
  run.mesh.context_parallel = ContextParallel::Ring;
  const Prediction shared = predict_run(run, a100_nodes(1));
  run.mesh = {};
  const Prediction whole = predict_run(run, a100_nodes(1));
  EXPECT_LT(exchanged.seconds.compute, whole.seconds.compute / 6);
  EXPECT_GT(shared.seconds.compute, exchanged.seconds.compute) << "a ring merges blocks";
  EXPECT_GT(shared.seconds.context, 0);
  EXPECT_LT(shared.memory[0].activations, whole.memory[0].activations / 6);
  EXPECT_GT(shared.seconds.data, 0);  // gradients are summed over context ranks
}

// The bytes of forward and backward that context ranks copy and merge beside those of as many tokens of one rank.
std::pair<double, double> copied(MeshSpec mesh) {
  RunSpec run = llama_7b();
  run.model.kv_heads = 8;
  const auto attention = [&](MeshSpec ranks) {
    run.mesh = ranks;
    const RunLayout layout = layout_of(run, a100_nodes(1), FormulaSet::Braid);
    return part_work(run, layout, 0, FormulaSet::Braid);
  };
  const PartWork shared = attention(mesh), whole = attention({});
  return {shared.forward.streamed_bytes - whole.forward.streamed_bytes / mesh.context,
          shared.input_grad.streamed_bytes - whole.input_grad.streamed_bytes / mesh.context};
}

TEST(PredictRun, ContextRanksCopyAndMerge) {
  const double q = 2.0 * 1024 * 4096, kv = q / 4;  // bytes of four ranks' tokens
  const auto [there, back] = copied({.context = 4, .context_parallel = ContextParallel::Ulysses});
  EXPECT_NEAR(there / (8 * (q + kv)), 1, 1e-9);
  EXPECT_NEAR(back / (8 * (q + kv)), 1, 1e-9);
  const auto [merged, gradients] = copied({.context = 4, .context_parallel = ContextParallel::Ring});
  EXPECT_NEAR(merged / (7 * 4.5 * q + 4 * q + 2 * kv), 1, 1e-9);
  EXPECT_NEAR(gradients / (3 * 4.5 * (q + 2 * kv) + 4 * q + 30 * kv), 1, 1e-9);
}

TEST(PredictRun, RecomputeGivesTimeForMemoryStageByStage) {
  RunSpec run = llama_7b();
  run.mesh = {.pipe = 8};
  const auto with = [&](const char* recompute) {
    run.memory.recompute = recompute;
    return predict_run(run, a100_nodes(1));
  };
  const Prediction none = with("none"), full = with("full"), first = with("full,none,none,none,none,none,none,none");
  EXPECT_LT(full.memory[0].activations, none.memory[0].activations / 4);
  EXPECT_GT(full.step_seconds(), 1.2 * none.step_seconds());
  EXPECT_EQ(first.memory[0], full.memory[0]);
  EXPECT_EQ(first.memory[7], none.memory[7]);
}

TEST(PredictRun, TensorRanksWaitForTheSlowerOne) {
  RunSpec run = llama_7b();
  run.mesh = {.tensor = 2};
  Cluster host = a100_nodes(1);
  const Prediction even = predict_run(run, host);
  host.devices[0].skew = 0.25;
  const Prediction uneven = predict_run(run, host);
  EXPECT_EQ(uneven.seconds.compute, even.seconds.compute);
  EXPECT_NEAR(uneven.seconds.tensor, even.seconds.tensor + 0.25 * even.seconds.compute, 1e-9 * even.step_seconds());
  run.mesh.tensor = 1;
  EXPECT_EQ(predict_run(run, host).seconds.tensor, 0);
}

// Half of the nodes have devices of twice the rate: stages in proportion are faster than stages that are alike.
TEST(PredictRun, StagesInProportionToTheirDevices) {
  Cluster cluster = a100_nodes(1);
  DeviceGroup slow = cluster.devices.front();
  for (PeakRate& peak : slow.peaks) peak.flops /= 2;
  slow.memory_bytes_per_second /= 2;
  cluster.devices.push_back(slow);
  RunSpec run = llama_7b();
  run.mesh = {.pipe = 2, .data = 8};
  run.train.batch = 8 * 16;
  run.model.layers = 30;
  const auto with = [&](const char* partition) {
    run.pipeline.partition = partition;
    return predict_run(run, cluster, {FormulaSet::Megatron}).step_seconds();
  };
  EXPECT_LT(with("20,10"), 0.75 * with("15,15"));
  EXPECT_GT(with("10,20"), with("15,15"));
}

// A node of eight devices, then eight nodes of one.
Cluster eight_and_ones() {
  Cluster cluster = a100_nodes(1);
  DeviceGroup& ones = cluster.devices.emplace_back(cluster.devices.front());
  ones.per_node = 1;
  ones.nodes = 8;
  return cluster;
}

TEST(PredictRun, RanksAreNeighboursWhereAllKindsThatTheyAreOnHaveAsMany) {
  const Cluster cluster = eight_and_ones();
  RunSpec run = llama_7b();
  run.mesh = {.tensor = 8};
  EXPECT_FALSE(layout_of(run, cluster, FormulaSet::Braid).tensor_group.across_nodes());
  run.mesh = {.data = 2, .tensor = 8};
  EXPECT_TRUE(layout_of(run, cluster, FormulaSet::Braid).tensor_group.across_nodes());
  EXPECT_GT(predict_run(run, cluster).seconds.tensor, 2 * predict_run(run, a100_nodes(2)).seconds.tensor);
}

TEST(PredictRun, TheNodeWithMostRanksHasMostOffloaded) {
  Cluster cluster = eight_and_ones();
  RunSpec run = llama_7b();
  run.mesh = {.data = 2, .tensor = 8};
  run.memory.optimizer = Tier::Host;
  const auto offloaded = [&] { return predict_run(run, cluster).offloaded_bytes; };
  const int64_t of_eight = predict_run(run, a100_nodes(2)).offloaded_bytes;
  EXPECT_EQ(offloaded(), of_eight);
  std::swap(cluster.devices[0], cluster.devices[1]);
  EXPECT_EQ(offloaded(), of_eight);
}

// Blocks whose attention computes much on the first kind, a head that reads and writes much on the second.
TEST(PredictRun, TheBoundHoldsWhereEachPartHasTheKindThatSuitsIt) {
  Cluster cluster{.name = "two", .node = {1e12, 1e-9}, .network = {1e12, 1e-9}};
  for (const auto& [flops, bytes] : {std::pair{1e12, 1e10}, {1e11, 1e13}}) {
    DeviceGroup& kind = cluster.devices.emplace_back();
    kind.memory_bytes = 1e12;
    kind.memory_bytes_per_second = bytes;
    kind.peaks = {{DType::Float32, flops}};
  }
  RunSpec run;
  run.model = {.layers = 100, .heads = 1, .width = 8, .context = 8192, .vocab = 100000};
  run.mesh.pipe = 2;
  run.train.batch = 64;
  run.train.microbatch = 1;
  run.pipeline.partition = "100,0";
  const double step = predict_run(run, cluster).step_seconds();
  EXPECT_LE(least_step_seconds(run, cluster, FormulaSet::Braid), step);
}

TEST(PredictRun, SaysWhatItCannotPredict) {
  RunSpec run = llama_7b();
  EXPECT_TRUE(prediction_problems(run, a100_nodes(1)).empty());
  EXPECT_TRUE(mesh_problems(run, a100_nodes(1)).empty());
  run.mesh.data = 16;
  run.pipeline.schedule = "file:table.csv";
  run.model.vocab = 0;
  EXPECT_EQ(prediction_problems(run, a100_nodes(1)).size(), 2u);
  EXPECT_EQ(mesh_problems(run, a100_nodes(1)).size(), 1u);
}

// A table with the passes of 1F1B takes what 1F1B takes; one that runs all forward passes first holds more.
TEST(PredictRun, PlaysATableInPlaceOfItsSchedule) {
  RunSpec run = llama_7b();
  run.mesh.pipe = 4;
  run.mesh.data = 2;
  run.pipeline.schedule = "1f1b";
  const Cluster cluster = a100_nodes(1);
  const Schedule same = make_schedule("1f1b", {4, 32}), gpipe = make_schedule("gpipe", {4, 32});
  EXPECT_EQ(predict_run(run, cluster, {.table = &same}), predict_run(run, cluster));
  EXPECT_GT(predict_run(run, cluster, {.table = &gpipe}).fullest().activations,
            4 * predict_run(run, cluster).fullest().activations);
}

TEST(PredictRun, ATableIsLikeAScheduleWithItsStagesOnTheSameRanks) {
  for (const char* name : {"interleaved", "zb-h1", "zb-v", "dualpipe"}) {
    const Schedule schedule = make_schedule(name, {4, 16});
    const auto like = pipeline_like(schedule);
    ASSERT_TRUE(like) << name;
    const ScheduleTraits &found = *find_schedule(like->schedule), &wanted = *find_schedule(name);
    EXPECT_EQ(found.placement, wanted.placement) << name;
    EXPECT_EQ(found.splits_backward, wanted.splits_backward) << name;
  }
  Schedule odd = make_schedule("1f1b", {2, 2});
  odd.stage_rank = {1, 0};
  EXPECT_FALSE(pipeline_like(odd));
}

}  // namespace
}  // namespace braid::plan::predict_run_test
