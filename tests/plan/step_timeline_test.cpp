// The predicted step as a timeline: its transfers have the bytes and the times of the prediction.
#include "braid/plan/step_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "braid/base/text.h"
#include "braid/plan/cluster_presets.h"
#include "braid/plan/pipelined_run.h"

namespace braid::plan::step_timeline_test {
namespace {

using schedule::DiskContent;
using schedule::DiskDirection;
using schedule::DiskTransfer;
using schedule::Span;
using schedule::Timeline;

Cluster node() { return cluster_preset("dgx-a100-80gb").value(); }

RunSpec resident_run() {
  RunSpec run;
  run.model = {.layers = 8, .heads = 8, .width = 512, .context = 256, .vocab = 4096};
  run.train.batch = 8;
  run.train.microbatch = 1;
  run.train.dtype = DType::BFloat16;
  return run;
}

RunSpec run_on_disk() {
  RunSpec run = resident_run();
  run.memory.optimizer = run.memory.gradients = run.memory.parameters = run.memory.activations = Tier::Disk;
  return run;
}

struct Step {
  Prediction prediction;
  Timeline timeline;
};

Step step_of(const RunSpec& run, const Cluster& cluster = node()) {
  PredictOptions options;
  options.kept = KeptOutcome::Timeline;
  PipelinedRun pipelined(run, cluster, options);
  const Prediction prediction = pipelined.with_zero(run.sync.zero, run.sync.zero_group);
  return {prediction, pipelined.steps().front().timeline};
}

int64_t sum_of_bytes(std::span<const DiskTransfer> transfers) {
  int64_t sum = 0;
  for (const DiskTransfer& transfer : transfers) sum += transfer.bytes;
  return sum;
}

// Each kind of bytes is rounded once.
constexpr double kRounding = 10;

void expect_predicted_bytes(const RunSpec& run) {
  const Step step = step_of(run);
  ASSERT_EQ(step.timeline.ranks.size(), static_cast<size_t>(run.mesh.pipe));
  EXPECT_GT(step.prediction.disk_bytes, 0);
  EXPECT_NEAR(static_cast<double>(sum_of_bytes(step.timeline.disk_of(0))), step.prediction.disk_bytes, kRounding);
  for (const auto& transfers : step.timeline.disk) {
    EXPECT_TRUE(std::ranges::is_sorted(transfers, {}, &DiskTransfer::begin));
    for (const DiskTransfer& transfer : transfers) EXPECT_LE(transfer.begin, transfer.end);
  }
}

TEST(StepTimeline, HasThePredictedBytes) {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "interleaved", "dualpipe"}) {
    SCOPED_TRACE(schedule);
    RunSpec run = run_on_disk();
    run.mesh.pipe = 4;
    run.pipeline.schedule = schedule;
    if (run.pipeline.schedule == "interleaved") run.pipeline.chunks = 2;
    expect_predicted_bytes(run);
  }
}

TEST(StepTimeline, HasThePredictedBytesOfEachTier) {
  for (Tier MemorySpec::*const tier : {&MemorySpec::gradients, &MemorySpec::parameters, &MemorySpec::activations}) {
    RunSpec run = resident_run();
    run.memory.optimizer = run.memory.*tier = Tier::Disk;
    expect_predicted_bytes(run);
    run.mesh.data = 2;
    run.sync.zero = 1;
    expect_predicted_bytes(run);
  }
}

TEST(StepTimeline, HasThePredictedBytesOfWeightsThatStay) {
  RunSpec run = run_on_disk();
  const double all = step_of(run).prediction.disk_bytes;
  run.memory.limit_gb = 1;
  EXPECT_LT(step_of(run).prediction.disk_bytes, all);
  expect_predicted_bytes(run);
}

TEST(StepTimeline, HasNoTransfersWithoutTiers) {
  const Step step = step_of(resident_run());
  EXPECT_EQ(step.prediction.disk_bytes, 0);
  EXPECT_FALSE(step.timeline.ranks.empty());
  EXPECT_TRUE(step.timeline.disk.empty());
  RunSpec run = resident_run();
  run.memory.optimizer = Tier::Host;
  EXPECT_TRUE(step_of(run).timeline.disk.empty());
}

// One rank: its passes, the waits, and the update that the disk's time makes longer.
TEST(StepTimeline, EndsWithThePredictedStep) {
  for (const double clip_norm : {0, 1}) {
    RunSpec run = run_on_disk();
    run.optimizer.clip_norm = clip_norm;
    const auto& [prediction, timeline] = step_of(run);
    const StepSeconds& seconds = prediction.seconds;
    EXPECT_GT(seconds.data, seconds.compute) << "the disk is slower than the passes";
    EXPECT_NEAR(timeline.makespan(), seconds.compute + seconds.data, 1e-9);
    EXPECT_NEAR(timeline.extent().end - timeline.extent().begin, prediction.step_seconds(), 1e-9);
  }
}

// The waits of the slowest rank are in the passes of all ranks.
TEST(StepTimeline, HasThePredictedWaitsOfAPipeline) {
  RunSpec run = run_on_disk();
  run.mesh.pipe = 4;
  const auto& [prediction, timeline] = step_of(run);
  const StepSeconds& seconds = prediction.seconds;
  EXPECT_NEAR(timeline.extent().end, prediction.step_seconds(), 0.01 * prediction.step_seconds());
  EXPECT_GT(timeline.makespan(), 1.2 * (seconds.compute + seconds.pipeline));
}

// A search keeps no spans.
TEST(StepTimeline, IsKeptOnlyWhereAskedFor) {
  PipelineQuestion question;
  question.schedule = "1f1b";
  question.request = {.ranks = 2, .microbatches = 3};
  question.stages.resize(2);
  question.held.resize(2);
  question.transfer = 0.5;
  const PipelineOutcome numbers = pipeline_outcome(question, PipelineDetail::Played);
  EXPECT_TRUE(numbers.timeline.ranks.empty());
  question.kept = KeptOutcome::Timeline;
  const PipelineOutcome kept = pipeline_outcome(question, PipelineDetail::Played);
  EXPECT_EQ(kept.seconds, numbers.seconds);
  EXPECT_EQ(kept.busiest_seconds, numbers.busiest_seconds);
  EXPECT_EQ(kept.timeline.makespan(), kept.seconds);
  const auto is_send = [](const Span& span) { return span.action.op == Op::SendForward; };
  EXPECT_EQ(std::ranges::count_if(kept.timeline.ranks[0], is_send), 3);
  EXPECT_TRUE(pipeline_outcome(question, PipelineDetail::Estimated).timeline.ranks.empty());
}

std::string words_of(const std::vector<DiskTransfer>& transfers) {
  std::string all;
  for (const DiskTransfer& one : transfers) {
    all += cat(word(one.direction), " ", word(one.content), " ", one.bytes, " ", one.begin, "-", one.end, "\n");
  }
  return all;
}

const std::vector<Span> kTwoMicrobatches = {{{Op::Forward, 0, 0}, 0, 10},
                                            {{Op::FullBackward, 0, 0}, 10, 30},
                                            {{Op::Forward, 0, 1}, 30, 40},
                                            {{Op::FullBackward, 0, 1}, 40, 60}};

// A read takes a second for each byte, a write two. The transfers of a pass wait for those of the pass before.
TEST(StepTimeline, TransfersOfPassesFollowOneAnother) {
  const RankDisk disk{.moves = {{MovedWith::Forward, DiskContent::Activations, {.written = 12}},
                                {MovedWith::FirstForward, DiskContent::Parameters, {.read = 3}},
                                {MovedWith::Backward, DiskContent::Activations, {.read = 7}},
                                {MovedWith::WeightPass, DiskContent::Gradients, {.written = 4}},
                                {MovedWith::LaterWeightPass, DiskContent::Gradients, {.read = 2}}},
                      .in_passes = {1, 2},
                      .in_update = {1, 2}};
  EXPECT_EQ(words_of(disk_transfers(kTwoMicrobatches, disk, 60)),
            "read parameters 3 0-3\n"
            "write activations 6 3-15\n"
            "read activations 4 15-19\n"
            "write gradients 2 19-23\n"
            "write activations 6 30-42\n"
            "read activations 3 42-45\n"
            "read gradients 2 45-47\n"
            "write gradients 2 47-51\n");
}

// All contents of an update share the time of its reads, then that of its writes. The norm's bytes have no time.
TEST(StepTimeline, TransfersOfAnUpdateAreReadsThenWrites) {
  const RankDisk disk{.moves = {{MovedWith::Norm, DiskContent::Gradients, {.read = 5}},
                                {MovedWith::Update, DiskContent::Optimizer, {6, 6}},
                                {MovedWith::Update, DiskContent::Parameters, {2, 4}}},
                      .in_passes = {1, 1},
                      .in_update = {2, 3}};
  EXPECT_EQ(words_of(disk_transfers(kTwoMicrobatches, disk, 50)),
            "read gradients 5 50-50\n"
            "read optimizer 6 50-66\n"
            "read parameters 2 50-66\n"
            "write optimizer 6 66-96\n"
            "write parameters 4 66-96\n");
}

TEST(StepTimeline, BytesOfPassesThatAreNotThereFollowTheLastPass) {
  const std::vector<Span> forwards = {{{Op::Forward, 0, 0}, 0, 10}, {{Op::Forward, 0, 1}, 10, 20}};
  const RankDisk disk{.moves = {{MovedWith::Forward, DiskContent::Parameters, {.read = 8}},
                                {MovedWith::Backward, DiskContent::Parameters, {.read = 8}}},
                      .in_passes = {1, 1}};
  EXPECT_EQ(words_of(disk_transfers(forwards, disk, 20)),
            "read parameters 4 0-4\nread parameters 4 10-14\nread parameters 8 20-28\n");
}

// Rank 1 waits at its own passes, and the passes of rank 0 that run then last as much longer.
TEST(StepTimeline, AllRanksWait) {
  Timeline timeline;
  timeline.ranks = {{{{Op::Forward, 0, 0}, 0, 1}, {{Op::Forward, 0, 1}, 1, 3}, {{Op::FullBackward, 0, 0}, 4, 6}},
                    {{{Op::Forward, 1, 0}, 1, 2}, {{Op::FullBackward, 1, 0}, 2, 4}}};
  const Timeline waited = with_waits(timeline, {.rank = 1, .forward = 10, .backward = 100});
  const auto times = [&](int rank, int place) {
    const Span& span = waited.ranks[rank][place];
    return std::pair(span.begin, span.end);
  };
  EXPECT_EQ(times(0, 0), std::pair(0.0, 1.0));
  EXPECT_EQ(times(0, 1), std::pair(1.0, 13.0));
  EXPECT_EQ(times(1, 0), std::pair(1.0, 12.0));
  EXPECT_EQ(times(1, 1), std::pair(12.0, 114.0));
  EXPECT_EQ(times(0, 2), std::pair(114.0, 116.0));
}

}  // namespace
}  // namespace braid::plan::step_timeline_test
