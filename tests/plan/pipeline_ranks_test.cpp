// The part of the model on each rank of a pipeline: halves of blocks, tied tables, mirrored stages, versions.
#include <gtest/gtest.h>

#include "braid/plan/predict_run.h"
#include "tests/plan/a100_runs.h"

namespace braid::plan::pipeline_ranks_test {
namespace {

// An attention half has about half of a feed-forward half's weights, and a cut may go between them.
TEST(PipelineRanks, HalvesOfABlockDiffer) {
  RunSpec run;
  run.model = {.layers = 4, .heads = 4, .width = 1024, .context = 128, .vocab = 512};
  run.model.output_weights = OutputWeights::Untied;
  run.mesh.pipe = 2;
  run.train.batch = 16;
  const auto with = [&](const char* partition) {
    run.pipeline.partition = partition;
    return predict_run(run, a100_nodes(1));
  };
  const Prediction whole = with("2,2"), cut = with("2.5,1.5"), more = with("3,1");
  const auto moved = [&](const Prediction& to) {
    return static_cast<double>(to.memory[0].parameters - whole.memory[0].parameters);
  };
  EXPECT_NEAR(moved(cut) / moved(more), 1.0 / 3, 2e-3);  // 4 h^2 of 12 h^2, and a few biases
  EXPECT_EQ(cut.memory[0].parameters + cut.memory[1].parameters,
            whole.memory[0].parameters + whole.memory[1].parameters);
  EXPECT_LT(cut.seconds.compute - whole.seconds.compute, 0.5 * (more.seconds.compute - whole.seconds.compute));
}

// Returns the parameters of all pipeline ranks.
int64_t parameters(const RunSpec& run) {
  int64_t bytes = 0;
  for (const RankMemory& rank : predict_run(run, a100_nodes(1)).memory) bytes += rank.parameters;
  return bytes;
}

TEST(PipelineRanks, ATiedTableIsThereOnceOnEachRankThatHasAnEnd) {
  RunSpec run = llama_7b();
  run.mesh = {};
  const int64_t whole = parameters(run), table = int64_t{32000} * 4096 * 2;
  run.mesh.pipe = 2;
  run.pipeline.schedule = "1f1b";
  EXPECT_NEAR(parameters(run), whole + table, 1e6);
  run.pipeline.schedule = "zb-v";  // the first rank has both ends
  EXPECT_NEAR(parameters(run), whole, 1e6);
  run.pipeline.schedule = "dualpipe";  // both ranks have all
  EXPECT_NEAR(parameters(run), 2 * whole, 1e6);
}

TEST(PipelineRanks, BothCopiesOfAMirroredStageAreSummed) {
  RunSpec run = llama_7b();
  run.mesh = {};
  run.mesh.pipe = 2;
  run.pipeline.schedule = "dualpipe";
  const Prediction found = predict_run(run, a100_nodes(1));
  const double gradients = 2.0 * static_cast<double>(found.memory[0].parameters);  // float32 beside bfloat16
  EXPECT_NEAR(found.sync_bytes / gradients, 1, 1e-6);
  run.sync.zero = 1;
  EXPECT_EQ(predict_run(run, a100_nodes(1)).memory[0].moments, found.memory[0].moments) << "shards are of data ranks";
  run.mesh.data = 2;
  EXPECT_NEAR(4.0 * static_cast<double>(predict_run(run, a100_nodes(1)).memory[0].moments),
              static_cast<double>(found.memory[0].moments), 8);
}

// Versions that are in use, and the next while an update makes it.
TEST(PipelineRanks, AnUpdateWritesItsVersionBesideThoseInUse) {
  RunSpec run = llama_7b();
  run.model.output_weights = OutputWeights::Untied;
  run.mesh = {};
  run.mesh.pipe = 4;
  run.train.batch = 8;
  const auto versions = [&](const char* schedule) {
    run.pipeline.schedule = "1f1b";
    const std::vector<RankMemory> of_one = predict_run(run, a100_nodes(1)).memory;
    run.pipeline.schedule = schedule;
    const std::vector<RankMemory> found = predict_run(run, a100_nodes(1)).memory;
    std::vector<int64_t> times;
    for (size_t rank = 0; rank < found.size(); ++rank)
      times.push_back(found[rank].parameters / of_one[rank].parameters);
    return times;
  };
  EXPECT_EQ(versions("pipedream"), (std::vector<int64_t>{5, 4, 3, 2}));
  EXPECT_EQ(versions("pipedream-2bw"), (std::vector<int64_t>{3, 3, 3, 3}));
  run.pipeline.weights = StageWeights::Vertical;
  EXPECT_EQ(versions("pipedream"), (std::vector<int64_t>{5, 5, 5, 5}));
  run.pipeline.weights = StageWeights::Own;
  run.train.batch = 4;  // one update of all microbatches
  EXPECT_EQ(versions("pipedream-2bw"), (std::vector<int64_t>{2, 2, 2, 2}));
}

}  // namespace
}  // namespace braid::plan::pipeline_ranks_test
