// The bytes that a rank moves between its memory and its tiers in a step.
#include "braid/plan/step_moves.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "braid/plan/cluster_presets.h"
#include "braid/plan/pipelined_run.h"

namespace braid::plan::step_moves_test {
namespace {

const Cluster& node() {
  static const Cluster made = cluster_preset("dgx-a100-80gb").value();
  return made;
}

// 8 microbatches on two pipeline ranks.
RunSpec two_ranks(int vocab) {
  RunSpec run;
  run.model = {.layers = 8, .heads = 8, .width = 512, .context = 256, .vocab = vocab};
  run.train = {.batch = 8, .microbatch = 1, .dtype = DType::BFloat16};
  run.mesh.pipe = 2;
  return run;
}

// 8 or 2 updates of 8 microbatches move states. Each microbatch moves its activations once.
TEST(StepMoves, AreThoseOfAllUpdates) {
  RunSpec run = two_ranks(4096);
  run.memory.optimizer = Tier::Disk;
  RunSpec moving = run;
  moving.memory.activations = Tier::Disk;
  const double states = predict_run(run, node()).disk_bytes;
  const Prediction once = predict_run(moving, node());
  EXPECT_GT(once.seconds.data, 0);
  for (const auto& [schedule, group, updates] : {std::tuple{"pipedream", 0, 8}, {"pipedream-2bw", 4, 2}}) {
    run.pipeline.schedule = moving.pipeline.schedule = schedule;
    run.pipeline.group = moving.pipeline.group = group;
    EXPECT_EQ(predict_run(run, node()).disk_bytes, updates * states);
    const Prediction often = predict_run(moving, node());
    EXPECT_EQ(often.disk_bytes - once.disk_bytes, (updates - 1) * states);
    EXPECT_NEAR(often.seconds.data, once.seconds.data, 1e-9);
  }
}

// A rank has two stages of DualPipe, each for half of the microbatches. One stage of 1F1B moves as much for all of
// them.
TEST(StepMoves, OfMirroredStagesAreOfHalfOfTheMicrobatches) {
  RunSpec run = two_ranks(512);
  run.memory.activations = Tier::Disk;
  const double once = predict_run(run, node()).disk_bytes;
  run.pipeline.schedule = "dualpipe";
  EXPECT_NEAR(predict_run(run, node()).disk_bytes / once, 1, 0.02);
}

// Returns the bytes of activations that each rank reads, as a fraction of those that it writes.
std::vector<double> fractions_read(const RunSpec& run) {
  PredictOptions options;
  options.kept = KeptOutcome::Timeline;
  PipelinedRun pipelined(run, node(), options);
  pipelined.with_zero(0, 0);
  const std::vector<PredictedStep> steps = pipelined.steps();
  std::vector<double> fractions;
  for (const auto& transfers : steps.front().timeline.disk) {
    double read = 0, written = 0;
    for (const schedule::DiskTransfer& transfer : transfers) {
      (transfer.direction == schedule::DiskDirection::Read ? read : written) += static_cast<double>(transfer.bytes);
    }
    fractions.push_back(read / written);
  }
  return fractions;
}

// The last of a rank's four blocks, or of the two of a stage, is still in memory.
TEST(StepMoves, ABackwardThatFollowsItsForwardReadsAllButTheLastBlock) {
  RunSpec run = two_ranks(512);
  run.memory.activations = Tier::Disk;
  for (const auto& [schedule, first, last] :
       {std::tuple{"1f1b", 1.0, 0.75}, {"gpipe", 1.0, 1.0}, {"zb-h1", 1.0, 0.75}, {"zb-v", 0.75, 1.0}}) {
    run.pipeline.schedule = schedule;
    const std::vector<double> fractions = fractions_read(run);
    EXPECT_NEAR(fractions[0], first, 0.01) << schedule;
    EXPECT_NEAR(fractions[1], last, 0.01) << schedule;
  }
}

}  // namespace
}  // namespace braid::plan::step_moves_test
