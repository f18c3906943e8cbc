// A step that is a spike: what each word of train.on_spike makes of it, on one rank and on four, and what a run that
// ends says of it.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <limits>
#include <mutex>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/spec/describe.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"
#include "tests/train/poisoned_model.h"

namespace braid::train::spike_test {
namespace {

constexpr int kMicrobatches = 4;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Plain gradient descent: an update that was left out leaves nothing but the weights.
RunSpec spec_on(const MeshSpec& mesh, OnSpike on_spike) {
  RunSpec spec = tiny_spec(2, kMicrobatches * mesh.data);
  spec.model.layers = 4;
  spec.mesh = mesh;
  spec.optimizer.kind = OptimizerKind::Sgd;
  spec.optimizer.momentum = 0;
  spec.optimizer.lr = 0.05;
  spec.train.steps = 40;
  spec.train.on_spike = on_spike;
  return spec;
}

void poison_steps(int first, int last, double gradient) { poison = {kMicrobatches, first, last, gradient}; }

class Spikes : public testing::TestWithParam<MeshSpec> {
 protected:
  ~Spikes() override { poison = {}; }

  // World ranks of the stage that has the poisoned block.
  static std::string first_stage(const Trainer& trainer) {
    std::vector<std::string> ranks;
    const mesh::DeviceMesh& mesh = trainer.groups().mesh;
    for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
      if (mesh.coords(rank)[mesh::Axis::Pipe] == 0 || mesh.size(mesh::Axis::Pipe) == 1) ranks.push_back(cat(rank));
    }
    return cat(ranks.size() == 1 ? "rank " : "ranks ", joined(ranks));
  }
  static std::string error_of_step(Trainer& trainer) {
    try {
      trainer.step();
    } catch (const RunError& error) {
      return error.what();
    }
    return "";
  }
};
INSTANTIATE_TEST_SUITE_P(Meshes, Spikes, testing::Values(MeshSpec{}, MeshSpec{.pipe = 2, .data = 2}),
                         [](const auto& info) { return cat("data", info.param.data, "_pipe", info.param.pipe); });

at::Tensor weights(Trainer& trainer) { return trainer.model().params().flat_master().detach().clone(); }

// Backward carries it on to all blocks before.
TEST_P(Spikes, StopNamesTheLastGradientThatIsNotFinite) {
  poison_steps(2, 2, kNan);
  on_every_rank(spec_on(GetParam(), OnSpike::Stop), kPoisoned, [](Trainer& trainer) {
    trainer.step();
    const at::Tensor good = weights(trainer);
    const std::string error = error_of_step(trainer);
    EXPECT_EQ(error.find("step 2: loss "), 0u) << error;
    EXPECT_NE(error.find(cat("gradients of blocks.1.")), error.npos) << error;
    EXPECT_NE(error.find(cat(" (layer blocks.1, ", first_stage(trainer), ") are not finite")), error.npos) << error;
    EXPECT_EQ(error.find("microbatch"), error.npos) << error;
    EXPECT_EQ(trainer.num_steps(), 1);
    EXPECT_TRUE(good.equal(weights(trainer)));
  });
}

// On one rank of the last stage, in the last replica.
TEST_P(Spikes, StopNamesTheWeightsThatAreNotFinite) {
  on_every_rank(spec_on(GetParam(), OnSpike::Stop), [](Trainer& trainer) {
    const mesh::DeviceMesh& mesh = trainer.groups().mesh;
    const int rank = mesh.num_ranks() - 1, data = mesh.coords(rank)[mesh::Axis::Data];
    trainer.step();
    if (trainer.groups().world.rank() == rank) {
      param::ParamStore& store = trainer.model().params();
      store["blocks.3.ln_2.weight"].data.detach().fill_(kNan);
    }
    const std::string error = error_of_step(trainer);
    const std::string want = cat("weights of blocks.3.ln_2.weight (layer blocks.3, rank ", rank, ") are not finite");
    EXPECT_NE(error.find(want), error.npos) << error;
    const int micro = kMicrobatches * data;
    EXPECT_NE(error.find(cat("first in microbatch ", micro, " (data rank ", data, ")")), error.npos) << error;
  });
}

// Microbatches in unequal parts.
TEST(SpikesOfUnequalShares, StopNamesTheDataRankOfTheMicrobatch) {
  RunSpec spec = spec_on({.data = 2, .batch_shares = "1,3"}, OnSpike::Stop);
  on_every_rank(spec, [](Trainer& trainer) {
    if (trainer.groups().world.rank() == 1) trainer.model().params().flat_data().detach().fill_(kNan);
    std::string error;
    try {
      trainer.step();
    } catch (const RunError& stopped) {
      error = stopped.what();
    }
    EXPECT_NE(error.find("first in microbatch 2 (data rank 1)"), error.npos) << error;
  });
}

TEST_P(Spikes, AnOutlierStopsWhereAThresholdSaysSo) {
  RunSpec spec = spec_on(GetParam(), OnSpike::Stop);
  spec.train.spike_threshold = 20;
  poison_steps(22, 22, 1e9);
  on_every_rank(spec, kPoisoned, [](Trainer& trainer) {
    while (trainer.num_steps() < 21) trainer.step();
    const std::string error = error_of_step(trainer);
    EXPECT_EQ(error.find("step 22: gradient norm "), 0u) << error;
    EXPECT_NE(error.find(" above its running mean of "), error.npos) << error;
  });
}

struct Course {
  std::vector<double> losses;
  std::vector<uint64_t> samples;
  std::vector<std::string> spikes;
};
void add(const StepReport& report, Course& course) {
  course.losses.push_back(report.loss);
  course.samples.push_back(report.sample_hash);
  course.spikes.push_back(report.spike);
}

// The other run puts the weights back after that step, of which nothing else is left.
TEST_P(Spikes, SkipIsARunWithoutThatUpdate) {
  const RunSpec spec = spec_on(GetParam(), OnSpike::Skip);
  Course skipped, left_out;
  poison_steps(3, 3, kNan);
  on_every_rank(spec, kPoisoned, [&](Trainer& trainer) {
    for (int step = 1; step <= 5; ++step) {
      const StepReport report = trainer.step();
      EXPECT_EQ(report.skipped, step == 3);
      EXPECT_EQ(trainer.num_steps(), step);
      if (trainer.groups().world.rank() == 0) add(report, skipped);
    }
  });
  on_every_rank(spec, [&](Trainer& trainer) {
    for (int step = 1; step <= 5; ++step) {
      const at::Tensor before = weights(trainer);
      const StepReport report = trainer.step();
      if (step == 3) trainer.model().params().flat_master().detach().copy_(before);
      if (trainer.groups().world.rank() == 0) add(report, left_out);
    }
  });
  EXPECT_EQ(skipped.losses, left_out.losses);
  EXPECT_EQ(skipped.samples, left_out.samples);
  EXPECT_NE(skipped.spikes[2].find(": not finite; gradients of blocks.1."), std::string::npos) << skipped.spikes[2];
  skipped.spikes[2].clear();
  EXPECT_EQ(skipped.spikes, left_out.spikes);
}

TEST_P(Spikes, TenSkipsInARowAreEnough) {
  poison_steps(2, 100, kNan);
  on_every_rank(spec_on(GetParam(), OnSpike::Skip), kPoisoned, [](Trainer& trainer) {
    for (int step = 1; step <= 11; ++step) EXPECT_EQ(trainer.step().skipped, step > 1);
    const std::string error = error_of_step(trainer);
    EXPECT_EQ(error.find("step 12: "), 0u) << error;
    EXPECT_NE(error.find("the 10 steps before it were skipped"), error.npos) << error;
  });
}

TEST_P(Spikes, RollbackLeavesStepWeightsAndSamplesToTheCaller) {
  poison_steps(3, 3, kNan);
  on_every_rank(spec_on(GetParam(), OnSpike::Rollback), kPoisoned, [](Trainer& trainer) {
    trainer.step();
    trainer.step();
    const at::Tensor good = weights(trainer);
    const StepReport report = trainer.step();
    const std::string where = cat(" (layer blocks.1, ", first_stage(trainer), ") are not finite");
    EXPECT_NE(report.spike.find("; gradients of blocks.1."), std::string::npos) << report.spike;
    EXPECT_TRUE(report.spike.ends_with(where)) << report.spike;
    EXPECT_FALSE(report.skipped);
    EXPECT_EQ(trainer.num_steps(), 2);
    EXPECT_EQ(trainer.next_batch(), 2);
    EXPECT_TRUE(good.equal(weights(trainer)));
  });
}

class SpikesOfARunThatGoesOn : public ScratchFolder {
 protected:
  ~SpikesOfARunThatGoesOn() override { poison = {}; }
};

// It has seen too few steps of its own to know one.
TEST_F(SpikesOfARunThatGoesOn, AreThoseOfTheRunThatDidNotEnd) {
  RunSpec spec = spec_on({.pipe = 2}, OnSpike::Skip);
  spec.model.vocab = 257;
  spec.data.paths = {"text"};  // for the configuration that checkpoints hold; never opened
  spec.train.spike_threshold = 20;
  Course whole, rest;
  poison_steps(25, 26, 1e9);
  on_every_rank(spec, kPoisoned, [&](Trainer& trainer) {
    while (trainer.num_steps() < 28) {
      const StepReport report = trainer.step();
      if (trainer.groups().world.rank() == 0 && report.step > 25) add(report, whole);
      if (trainer.num_steps() == 25) trainer.save(path("step-25"), spec::to_toml(spec));
    }
  });
  ASSERT_NE(whole.spikes[0], "");
  EXPECT_EQ(whole.spikes[1], "");
  poison_steps(1, 1, 1e9);
  on_every_rank(spec, kPoisoned, [&](Trainer& trainer) {
    trainer.load(path("step-25"));
    while (trainer.num_steps() < 28) {
      const StepReport report = trainer.step();
      if (trainer.groups().world.rank() == 0) add(report, rest);
    }
  });
  EXPECT_EQ(rest.spikes, whole.spikes);
  EXPECT_EQ(rest.losses, whole.losses);
  EXPECT_EQ(rest.samples, whole.samples);
}

TEST_F(SpikesOfARunThatGoesOn, ItsDataCursorTravels) {
  RunSpec spec = spec_on({}, OnSpike::Rollback);
  spec.model.vocab = 257;
  spec.data.paths = {"text"};
  std::vector<uint64_t> plain, passed;
  on_every_rank(spec, [&](Trainer& trainer) {
    for (int step = 1; step <= 8; ++step) plain.push_back(trainer.step().sample_hash);
  });
  on_every_rank(spec, [&](Trainer& trainer) {
    trainer.step();
    trainer.go_on_at(4);
    passed.push_back(trainer.step().sample_hash);
    trainer.save(path("step-2"), spec::to_toml(spec));
  });
  on_every_rank(spec, [&](Trainer& trainer) {
    trainer.load(path("step-2"));
    EXPECT_EQ(trainer.next_batch(), 5);
    passed.push_back(trainer.step().sample_hash);
  });
  EXPECT_EQ(passed, (std::vector<uint64_t>{plain[4], plain[5]}));
}

// Float16's overflows cost its scale, and are no spikes.
TEST_F(SpikesOfARunThatGoesOn, AnOverflowIsNone) {
  RunSpec spec = spec_on({}, OnSpike::Stop);
  spec.train.dtype = DType::Float16;
  poison_steps(2, 2, std::numeric_limits<double>::infinity());
  on_every_rank(spec, kPoisoned, [](Trainer& trainer) {
    trainer.step();
    const StepReport overflow = trainer.step(), after = trainer.step();
    EXPECT_TRUE(overflow.skipped);
    EXPECT_EQ(overflow.spike, "");
    EXPECT_EQ(after.loss_scale, overflow.loss_scale / 2);
    EXPECT_FALSE(after.skipped);
  });
}

}  // namespace
}  // namespace braid::train::spike_test
