// Runs whose ranks use different weights at the same time are compared with a serial program.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/verify/serial_run.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/verify/faulty_run.h"

namespace braid::verify::replays_test {
namespace {

constexpr int kSteps = 5;

RunSpec replicas(ReplicationKind kind, const MeshSpec& mesh) {
  RunSpec run = on(mesh);
  run.sync.replication = kind;
  run.sync.period = 2;
  return run;
}

RunSpec stages(const char* schedule, const MeshSpec& mesh) {
  RunSpec run = on(mesh);
  run.model.layers = 4;
  run.model.output_weights = OutputWeights::Untied;
  run.pipeline.schedule = schedule;
  return run;
}

// Returns the first divergence of five steps, in which replicas meet three times.
std::string found_late(const RunSpec& run, const Around& around) {
  VerifyOptions options;
  options.steps = kSteps;
  options.around = around;
  const Verdict verdict = verify_layout(run, synthetic_corpus(run, kSteps), options);
  if (!verdict.first_divergence) return "equal";
  const Divergence& first = *verdict.first_divergence;
  return cat("step ", first.step, " ", word(first.phase), " | ", first.op, " | ", first.tensor);
}

const Around kSound = inputs([](RankInputs&) {});

void expect_equal(const std::vector<RunSpec>& all, size_t stride) {
  for (const RunSpec& run : sampled(all, stride)) {
    SCOPED_TRACE(cat(word(run.sync.replication), " warmup ", run.sync.period_warmup, " ", run.pipeline.schedule, " ",
                     word(run.pipeline.weights), " pipe ", run.mesh.pipe, " data ", run.mesh.data));
    EXPECT_EQ(found_late(run, kSound), "equal");
  }
}

TEST(Replays, ReplicasThatUpdateApartAreEqual) {
  std::vector<RunSpec> all;
  for (const ReplicationKind kind : {ReplicationKind::LocalSgd, ReplicationKind::DiLoCo}) {
    for (const MeshSpec& mesh : {MeshSpec{.data = 2}, MeshSpec{.pipe = 2, .data = 2, .tensor = 2}}) {
      for (const int warmup : {0, 2, 1}) {
        all.push_back(replicas(kind, mesh));
        all.back().sync.period_warmup = warmup;
      }
    }
  }
  expect_equal(all, 2);
  RunSpec narrow = replicas(ReplicationKind::DiLoCo, {.data = 2, .tensor = 2});
  narrow.train.dtype = DType::BFloat16;
  RunSpec tree = replicas(ReplicationKind::LocalSgd, {.pipe = 2, .data = 2});
  tree.train.reduction = Reduction::Reproducible;
  expect_equal({narrow, tree}, 1);
}

TEST(Replays, StagesOfAsynchronousPipelinesAreEqual) {
  std::vector<RunSpec> all;
  for (const MeshSpec& mesh : {MeshSpec{.pipe = 4}, MeshSpec{.pipe = 2, .data = 2, .tensor = 2}}) {
    all.push_back(stages("pipedream", mesh));
    all.push_back(stages("pipedream", mesh));
    all.back().pipeline.weights = StageWeights::Vertical;
    all.push_back(stages("pipedream-2bw", mesh));
  }
  all.push_back(stages("pipedream", {.pipe = 2}));
  all.back().train.dtype = DType::BFloat16;
  expect_equal(all, 2);
  all.front().optimizer.clip_norm = 0;
  expect_equal({all.front()}, 1);
}

class ReplaysOfTables : public ScratchFolder {};

TEST_F(ReplaysOfTables, AreRefused) {
  RunSpec run = stages("pipedream", {.pipe = 2});
  EXPECT_TRUE(changed_semantics(run).empty());
  write(path("table.csv"), schedule::to_csv(make_schedule("pipedream", {2, 8})));
  run.pipeline.schedule = cat("file:", path("table.csv"));
  ASSERT_EQ(changed_semantics(run).size(), 1u);
  EXPECT_EQ(changed_semantics(run).front().key, "pipeline.schedule");
}

// The update of a microbatch carries the difference of the last stage to later microbatches on the first.
TEST(PlantedReplayFaults, WeightsOfAnotherVersion) {
  const auto vertical = inputs([](RankInputs& rank) { rank.spec.pipeline.weights = StageWeights::Vertical; });
  EXPECT_EQ(found_late(stages("pipedream", {.pipe = 2}), vertical),
            "step 1 forward | embedding lookup wte | output btc");
}

TEST(PlantedReplayFaults, AnAverageOfReplicasLeftOut) {
  const auto apart = calls([](CallChanges& changes, int) {
    changes.all_reduce = [](const Call& call, const at::Tensor& tensor, ReduceOp op) {
      return call.group == "replicas" ? Work() : call.inner.all_reduce(tensor, op);
    };
  });
  EXPECT_EQ(found_late(replicas(ReplicationKind::LocalSgd, {.data = 2}), apart),
            "step 2 update | embedding lookup wte | wte.weight");
}

TEST(PlantedReplayFaults, AnOuterOptimizerWithAnotherMomentum) {
  const auto other = inputs([](RankInputs& rank) { rank.spec.sync.outer_momentum -= 1e-6; });
  EXPECT_EQ(found_late(replicas(ReplicationKind::DiLoCo, {.data = 2}), other),
            "step 2 update | embedding lookup wte | wte.weight");
}

TEST(PlantedReplayFaults, ReplicasThatMeetTooLate) {
  const auto late = inputs([](RankInputs& rank) { rank.spec.sync.period = 3; });
  EXPECT_EQ(found_late(replicas(ReplicationKind::LocalSgd, {.data = 2}), late),
            "step 2 update | embedding lookup wte | wte.weight");
}

}  // namespace
}  // namespace braid::verify::replays_test
