// Bytes that kinds of replication send and keep, beside plain all-reduce.
#include "braid/plan/data_exchange.h"

#include <gtest/gtest.h>

#include "braid/plan/cluster_presets.h"
#include "braid/plan/predict_run.h"

namespace braid::plan::data_exchange_test {
namespace {

Cluster node() { return cluster_preset("dgx-a100-80gb").value(); }

// All sizes are multiples of what parameters are aligned to.
RunSpec on_eight_ranks() {
  RunSpec run;
  run.model = {
      .family = ModelFamily::Llama, .layers = 8, .heads = 8, .width = 1024, .ffn = 4096, .context = 512, .vocab = 8192};
  run.train.batch = 64;
  run.train.microbatch = 1;
  run.train.dtype = DType::BFloat16;
  run.mesh.data = 8;
  return run;
}

// Beside a worker's weights and gradients: what servers hold and what is read of it, gradients that are clipped.
// At a save the worker has AdamW's moments, and the server on its rank a copy of them, but no activations are held.
TEST(DataExchange, ServersKeepTwoCopiesMore) {
  RunSpec run = on_eight_ranks();
  run.train.dtype = DType::Float32;
  const Prediction plain = predict_run(run, node());
  run.sync.replication = ReplicationKind::ParameterServer;
  const Prediction served = predict_run(run, node());
  const int64_t all = plain.memory[0].parameters;
  const int64_t at_save = 2 * 2 * all + 64 - plain.memory[0].activations;
  ASSERT_GT(at_save, 0);
  EXPECT_EQ(served.memory[0].moments - plain.memory[0].moments, 3 * all + at_save);
  EXPECT_EQ(served.sync_bytes, static_cast<double>(all));
  run.optimizer.clip_norm = 0;
  run.sync.push_every = 4;
  EXPECT_EQ(predict_run(run, node()).memory[0].moments, served.memory[0].moments);  // added up in place of clipped
  EXPECT_EQ(predict_run(run, node()).sync_bytes, static_cast<double>(all) / 4);
}

// A mesh rank keeps weights, gradients and clipped gradients. At a save it has AdamW's moments, and three copies from
// one server, but no activations. The servers share two copies, AdamW's moments, and under bsp the pushes of a clock.
// With few workers, the moments that are copied at a save take more than the pushes.
TEST(DataExchange, ServersOfTheirOwnTakeTheirMemoryFromTheRanks) {
  RunSpec run = on_eight_ranks();
  run.train.dtype = DType::Float32;
  run.sync.replication = ReplicationKind::ParameterServer;
  EXPECT_EQ(predict_run(run, node()).server_bytes, 0);
  run.sync.servers = 4;
  run.sync.servers_on = ServersOn::Own;
  const Prediction served = predict_run(run, node());
  const int64_t all = served.memory[0].parameters;
  const int64_t at_save = 2 * all + 3 * all / 4 + 64;
  EXPECT_LT(served.memory[0].activations, at_save);
  EXPECT_EQ(served.memory[0].moments, all + at_save - served.memory[0].activations);
  EXPECT_EQ(served.server_bytes, (2 + 2 + 8) * all / 4);
  run.mesh.data = 1;
  EXPECT_EQ(predict_run(run, node()).server_bytes, (2 + 2 + 2) * all / 4);
  run.mesh = {.pipe = 2, .data = 4};
  run.model.output_weights = OutputWeights::Untied;
  const Prediction cut = predict_run(run, node());
  EXPECT_EQ(cut.server_bytes, (2 + 2 + 4) * (cut.memory[0].parameters + cut.memory[1].parameters) / 4);
}

// Ranks that share a host's memory have equal parts of it. Servers are never in the memory of an accelerator.
TEST(DataExchange, AServerOfItsOwnMustFitIntoTheHost) {
  RunSpec run = on_eight_ranks();
  run.train.dtype = DType::Float32;
  run.sync.replication = ReplicationKind::ParameterServer;
  run.sync.servers = 1;
  run.sync.servers_on = ServersOn::Own;
  Cluster host = node();
  host.devices[0].shared_cores = true;
  host.devices[0].reserve = {};
  const Prediction roomy = predict_run(run, host);
  EXPECT_TRUE(roomy.fits());
  EXPECT_EQ(roomy.most_bytes(), roomy.server_bytes);
  host.devices[0].memory_bytes *=
      0.9 * static_cast<double>(roomy.server_bytes) / static_cast<double>(roomy.memory_bytes);
  const Prediction tight = predict_run(run, host);
  EXPECT_LT(tight.fullest().total(), tight.memory_bytes);
  EXPECT_FALSE(tight.fits());
  host.devices[0].shared_cores = false;
  EXPECT_TRUE(predict_run(run, host).fits());
}

TEST(DataExchange, DiLoCoKeepsTwoCopiesMore) {
  RunSpec run = on_eight_ranks();
  run.sync.period = 8;
  run.sync.replication = ReplicationKind::LocalSgd;
  const RankMemory plain = predict_run(run, node()).memory[0];
  run.sync.replication = ReplicationKind::DiLoCo;
  const RankMemory outer = predict_run(run, node()).memory[0];
  EXPECT_EQ(outer.moments - plain.moments, 4 * plain.parameters);  // float32 beside bfloat16
}

TEST(DataExchange, EachUpdateOfAnAsynchronousPipelineSumsGradients) {
  RunSpec run = on_eight_ranks();
  run.mesh = {.pipe = 2, .data = 2};
  run.model.output_weights = OutputWeights::Untied;
  run.train.batch = 16;  // 8 microbatches of a replica
  const double once = predict_run(run, node()).sync_bytes;
  run.pipeline.schedule = "pipedream-2bw";
  run.pipeline.group = 4;
  EXPECT_EQ(predict_run(run, node()).sync_bytes, 2 * once);
}

// With a frozen embedding the four layers behind it have a backward if they, or layers before them, are trained.
TEST(DataExchange, LayersWithoutABackwardAreGatheredForTheForwardAlone) {
  RunSpec run = on_eight_ranks();
  run.sync.zero = 3;
  run.model.output_weights = OutputWeights::Untied;
  const auto sent_without = [&](const char* layers) {
    run.optimizer.groups = {{.match = "wte.*", .frozen = true}, {.match = layers, .frozen = true}};
    return predict_run(run, node());
  };
  const Prediction first = sent_without("blocks.[0-3].*"), last = sent_without("blocks.[4-7].*");
  const int64_t block = 2 * (4 * 1024 * 1024 + 3 * 1024 * 4096 + 2 * 1024);
  EXPECT_EQ(last.sync_bytes - first.sync_bytes, 8 * 7 / 8.0 * 4 * static_cast<double>(block)) << "8 microbatches";
  EXPECT_LT(first.step_seconds(), last.step_seconds());
}

// A rank of one stage has it whole for all of the step.
TEST(DataExchange, StagesThatAreGatheredAsAWholeAreGatheredOnce) {
  RunSpec run = on_eight_ranks();
  run.sync.zero = 3;
  const Prediction blocks = predict_run(run, node());
  run.sync.zero_gather = GatherUnit::Stage;
  const Prediction stage = predict_run(run, node());
  const double weights = 8.0 * static_cast<double>(blocks.memory[0].parameters);  // of the eight ranks that share them
  EXPECT_EQ(blocks.sync_bytes - stage.sync_bytes, 15 * 7 / 8.0 * weights) << "two for each of 8 microbatches, or one";
  const int64_t block = 2 * (4 * 1024 * 1024 + 3 * 1024 * 4096 + 2 * 1024);
  const int64_t ends = 2 * (8 * 1024 * 1024 + 1024);
  EXPECT_EQ(stage.memory[0].communication - blocks.memory[0].communication, 6 * block + ends) << "of 8, two at a time";
}

// The two uses of a tied table are summed where each rank has its shard of both.
TEST(DataExchange, UsesOfATiedTableAreSummedByShards) {
  RunSpec run = on_eight_ranks();
  run.mesh = {.pipe = 2, .data = 4};
  const double table = 4.0 * 8192 * 1024;
  for (const auto& [zero, group, shards] : {std::tuple{0, 0, 1}, {1, 0, 4}, {1, 2, 2}, {3, 0, 4}}) {
    run.sync.zero = zero;
    run.sync.zero_group = group;
    run.model.output_weights = OutputWeights::Tied;
    const double tied = predict_run(run, node()).sync_bytes;
    run.model.output_weights = OutputWeights::Untied;
    EXPECT_EQ(tied - predict_run(run, node()).sync_bytes, table / shards) << zero << " " << group;
  }
}

// The context ranks of the data ranks of a group shard the copy with them, as they do without groups.
TEST(DataExchange, GroupsOfShardsHaveAllContextRanks) {
  RunSpec run = on_eight_ranks();
  run.mesh = {.data = 2, .context = 4};
  run.sync.zero = 1;
  const int64_t over_all = predict_run(run, node()).memory[0].moments;
  run.sync.zero_group = 2;
  EXPECT_EQ(predict_run(run, node()).memory[0].moments, over_all);
  run.sync.zero_group = 1;
  EXPECT_EQ(predict_run(run, node()).memory[0].moments, 2 * over_all);
}

}  // namespace
}  // namespace braid::plan::data_exchange_test
