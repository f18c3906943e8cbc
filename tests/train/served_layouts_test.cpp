// Parameter servers beside pipeline and tensor ranks: each part of the model has servers of its own. Bulk synchronous
// they train the serial model on every mesh; in any order of pushes replicas stay within their bound.
#include <ATen/ops/logical_and.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <thread>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/served_run.h"

namespace braid::train::served_layouts_test {
namespace {

const LayoutResult& serial(const RunSpec& like) {
  static std::map<std::string, LayoutResult> known;
  const std::string key = cat(like.train.batch, like.model.output_weights, like.optimizer.clip_norm);
  if (!known.contains(key)) {
    RunSpec spec = like;
    spec.mesh = {};
    spec.pipeline = {};
    spec.sync = {};
    known[key] = train_layout(spec);
  }
  return known[key];
}

void expect_the_serial_training(const RunSpec& spec) {
  const LayoutResult &want = serial(spec), got = train_layout(spec);
  for (size_t i = 0; i < want.losses.size(); ++i) EXPECT_NEAR(got.losses.at(i), want.losses[i], 1e-10);
  EXPECT_EQ(got.sample_hashes, want.sample_hashes);
  EXPECT_LT(largest_difference(got.params, want.params), 1e-10);
  for (size_t i = 0; spec.mesh.data == 1 && i < want.grad_norms.size(); ++i) {
    EXPECT_NEAR(got.grad_norms.at(i), want.grad_norms[i], 1e-10);
  }
}

std::vector<ScheduleOnMesh> layouts() {
  return {{"1f1b", {.pipe = 1, .data = 2, .tensor = 2}},
          {"gpipe", {.pipe = 2, .data = 2}},
          {"1f1b", {.pipe = 4, .data = 2}},
          {"interleaved", {.pipe = 2, .data = 2, .tensor = 2}},
          {"zb-h1", {.pipe = 2, .data = 2, .tensor = 2}},
          {"zb-v", {.pipe = 2, .data = 2}},
          {"dualpipe", {.pipe = 2, .data = 1}},
          {"dualpipe", {.pipe = 2, .data = 2}}};
}

class ServedLayouts : public testing::TestWithParam<ScheduleOnMesh> {};

TEST_P(ServedLayouts, BulkSynchronousIsTheSerialRun) {
  for (const auto& [weights, servers] : {std::pair("tied", 2), {"untied", 1}}) {
    SCOPED_TRACE(cat(weights, ", ", servers, " servers"));
    RunSpec spec = served_spec(GetParam());
    spec.model.output_weights = value_of<OutputWeights>(weights).value();
    spec.sync.servers = servers;
    expect_the_serial_training(spec);
  }
}

// With one replica a worker's norm is that of the serial run.
TEST_P(ServedLayouts, ClippingIsByTheNormOfTheReplica) {
  RunSpec spec = served_spec(GetParam());
  spec.mesh.data = 1;
  spec.train.batch = kServedMicrobatches;
  spec.optimizer.clip_norm = 0.5;
  expect_the_serial_training(spec);
}

INSTANTIATE_TEST_SUITE_P(Meshes, ServedLayouts, testing::ValuesIn(layouts()),
                         [](const auto& info) { return cat(info.param); });

// However they are pushed: the ends of a pipeline to two servers, tensor ranks to servers each.
TEST(ServedLayouts, CopiesOfAParameterAreTheSameBits) {
  int num_shared = 0;
  const RunSpec spec = served_spec({"1f1b", {.pipe = 2, .data = 2, .tensor = 2}});
  const EachRanks ranks = weights_after(spec, [](Trainer& trainer) {
    for (int step = 0; step < 3; ++step) trainer.step();
  });
  EXPECT_TRUE(copies_agree(ranks, &num_shared));
  EXPECT_GT(num_shared, 50);
}

// No update is longer than the rate times the norm that is clipped to, however many workers there are.
TEST(ServedLayouts, AClippedPushIsAsLongAsTheClipNorm) {
  for (const MeshSpec& mesh : {MeshSpec{.data = 4}, MeshSpec{.pipe = 2, .data = 2}}) {
    RunSpec spec = served_spec({"1f1b", mesh});
    spec.model.output_weights = OutputWeights::Untied;
    spec.optimizer.kind = OptimizerKind::Sgd;
    spec.optimizer.momentum = 0;
    spec.optimizer.weight_decay = 0;
    spec.optimizer.clip_norm = 0.01;
    spec.optimizer.schedule = RateSchedule::Constant;
    spec.train.steps = 1;
    RunSpec still = spec;
    still.optimizer.lr = 1e-300;
    const auto before = train_layout(still).params, after = train_layout(spec).params;
    double squares = 0;
    for (const auto& [name, weight] : after) squares += weight.sub(before.at(name)).square().sum().item<double>();
    const double longest = spec.optimizer.lr * spec.optimizer.clip_norm;
    EXPECT_LT(std::sqrt(squares), longest * (1 + 1e-6));
    EXPECT_GT(std::sqrt(squares), longest / 3);
  }
}

TEST(ServedLayouts, AFailingRankEndsTheRunForAll) {
  for (const char* consistency : {"bsp", "asp"}) {
    RunSpec spec = served_spec({"1f1b", {.pipe = 2, .data = 2}}, consistency);
    spec.model.output_weights = OutputWeights::Untied;
    EXPECT_THROW(on_every_rank(spec,
                               [&](Trainer& trainer) {
                                 trainer.step();
                                 if (trainer.groups().world.rank() == 1) throw RunError("out of paper");
                                 while (true) trainer.step();
                               }),
                 RunError);
  }
}

class ServedLayoutCheckpoint : public ScratchFolder {
 protected:
  std::map<std::string, at::Tensor> after_three(const RunSpec& first, const RunSpec& then) {
    const std::string folder = path(cat("step-2-", ++count_));
    on_every_rank(first, [&](Trainer& trainer) {
      trainer.step();
      trainer.step();
      trainer.save(folder, "");
    });
    std::map<std::string, at::Tensor> params;
    std::mutex lock;
    on_every_rank(then, [&](Trainer& trainer) {
      trainer.load(folder);
      trainer.step();
      const std::scoped_lock hold(lock);
      collect(trainer, params, Held::Weights);
    });
    return params;
  }

 private:
  int count_ = 0;
};

TEST_F(ServedLayoutCheckpoint, GoesOnOnAnotherMeshWithServersOrWithout) {
  const ScheduleOnMesh one{"1f1b", {.pipe = 1, .data = 2}};
  const ScheduleOnMesh two{"1f1b", {.pipe = 2, .data = 2}}, four{"zb-v", {.pipe = 2, .data = 2, .tensor = 2}};
  const auto& want = serial(served_spec(one)).params;
  EXPECT_LT(largest_difference(after_three(served_spec(two), served_spec(one, "")), want), 1e-10);
  EXPECT_LT(largest_difference(after_three(served_spec(one, ""), served_spec(two)), want), 1e-10);
  EXPECT_LT(largest_difference(after_three(served_spec(four), served_spec(two)), want), 1e-10);
  EXPECT_LT(largest_difference(after_three(served_spec(one), served_spec(four)), want), 1e-10);
}

// A tied embedding may be, where both ends are on one rank.
RunSpec apart(const ScheduleOnMesh& layout, const std::string& consistency) {
  RunSpec spec = served_spec(layout, consistency);
  spec.model.output_weights = layout.schedule == "zb-v" ? OutputWeights::Tied : OutputWeights::Untied;
  spec.sync.staleness = 2;
  spec.train.steps = 16;
  return spec;
}

TEST_F(ServedLayoutCheckpoint, OfReplicasThatRunApartHoldsAllPushes) {
  for (const char* consistency : {"ssp", "asp"}) {
    for (const char* schedule : {"1f1b", "zb-v"}) {
      const bool looked_at = full_run() || (schedule == std::string("zb-v")) == (consistency == std::string("asp"));
      if (!looked_at) continue;
      SCOPED_TRACE(cat(consistency, " ", schedule));
      const RunSpec spec = apart({schedule, {.pipe = 2, .data = 2}}, consistency);
      const std::string folder = path(cat(consistency, schedule));
      double before = 0, after = 0;
      const EachRanks ranks = weights_after(spec, [&](Trainer& trainer) {
        const double at_first = trainer.evaluate();
        for (int step = 0; step < 12; ++step) trainer.step();
        const double at_last = trainer.evaluate();
        if (trainer.groups().world.rank() == 0) before = at_first, after = at_last;
        trainer.save(folder, "");
      });
      EXPECT_LT(after, before);
      EXPECT_TRUE(copies_agree(ranks));
      for (const MeshSpec& mesh : {MeshSpec{.pipe = 2, .data = 2}, MeshSpec{.data = 2}}) {
        on_every_rank(apart({schedule, mesh}, consistency), [&](Trainer& trainer) {
          trainer.load(folder);
          EXPECT_NEAR(trainer.evaluate(), after, 1e-10);
          for (int step = 12; step < 16; ++step) EXPECT_TRUE(std::isfinite(trainer.step().loss));
        });
      }
    }
  }
}

// Replica 1 waits until replica 0 is as far ahead as it may be. Between a pull and the push that follows, each of the
// other workers has pushed at most 2 s + 1 times: it was at most s behind, and comes at most s + 1 ahead.
TEST(ServedLayouts, StalenessIsBoundedAndReached) {
  constexpr int kStaleness = 2, kSteps = 10;
  const RunSpec spec = [&] {
    RunSpec given = apart({"1f1b", {.pipe = 2, .data = 2}}, "ssp");
    given.sync.staleness = kStaleness;
    return given;
  }();
  std::atomic<int> done[2] = {0, 0};  // steps of replica 0, by pipeline rank
  std::atomic<int> most = 0;
  on_every_rank(spec, [&](Trainer& trainer) {
    const mesh::Coords at = trainer.groups().at;
    for (int step = 0; step < kSteps; ++step) {
      const int ahead = std::min(kSteps, step + kStaleness);
      while (at[mesh::Axis::Data] == 1 && (done[0] < ahead || done[1] < ahead)) std::this_thread::yield();
      const int staleness = trainer.step().staleness;
      EXPECT_LE(staleness, 2 * kStaleness + 1);
      if (at[mesh::Axis::Data] == 0) done[at[mesh::Axis::Pipe]] = step + 1;
      for (int seen = most; seen < staleness && !most.compare_exchange_weak(seen, staleness);) continue;
    }
  });
  EXPECT_GE(most.load(), kStaleness);
}

}  // namespace
}  // namespace braid::train::served_layouts_test
