// The tiers and refusals that follow from memory.limit_gb before a run starts.
#include "braid/train/memory_limit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/plan/predict_run.h"
#include "braid/spec/parse.h"
#include "braid/train/run.h"

namespace braid::train::memory_limit_test {
namespace {

RunSpec run_spec(const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all = {
      "data.paths=[text]", "model.layers=4", "model.heads=8",      "model.width=512",   "model.context=64",
      "model.vocab=8192",  "train.batch=8",  "train.microbatch=8", "memory.chunk_mb=1", "memory.activations=resident"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return spec::parse_run("", "test", all);
}

double gib_of(const RunSpec& spec) {
  return std::ldexp(static_cast<double>(plan::predict_run(spec, plan::nominal_cluster(spec)).most_bytes()), -30);
}

RunSpec limited(RunSpec spec, double gib) {
  spec.memory.limit_gb = gib;
  return within_memory_limit(spec, host_limits());
}

std::string refusal(const RunSpec& spec, double gib) {
  try {
    limited(spec, gib);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(MemoryLimit, WithoutOneNothingChanges) { EXPECT_EQ(within_memory_limit(run_spec(), host_limits()), run_spec()); }

TEST(MemoryLimit, StatesAreOnDiskWhereTheyDoNotFit) {
  const RunSpec resident = run_spec({"memory.optimizer=resident"}), disk = run_spec({"memory.optimizer=disk"});
  ASSERT_LT(gib_of(disk), 0.7 * gib_of(resident));
  EXPECT_EQ(limited(run_spec(), 1.01 * gib_of(resident)).memory.optimizer, Tier::Resident);
  EXPECT_EQ(limited(run_spec(), 0.99 * gib_of(resident)).memory.optimizer, Tier::Disk);
  EXPECT_EQ(limited(run_spec(), 1.01 * gib_of(disk)).memory.optimizer, Tier::Disk);
  EXPECT_EQ(limited(disk, 1.01 * gib_of(resident)).memory.optimizer, Tier::Disk) << "as given";
}

TEST(MemoryLimit, GradientsAndParametersFollowWhereThatIsNotEnough) {
  const RunSpec optimizer = run_spec({"memory.optimizer=disk"});
  const RunSpec gradients = run_spec({"memory.optimizer=disk", "memory.gradients=disk"});
  const RunSpec all = run_spec({"memory.optimizer=disk", "memory.gradients=disk", "memory.parameters=disk"});
  ASSERT_LT(gib_of(gradients), 0.95 * gib_of(optimizer));
  ASSERT_LT(gib_of(all), 0.95 * gib_of(gradients));
  const auto tiers = [](const MemorySpec& memory) {
    return std::vector{memory.optimizer, memory.gradients, memory.parameters};
  };
  const auto tiers_within = [&](double gib) { return tiers(limited(run_spec(), gib).memory); };
  EXPECT_EQ(tiers_within(1.01 * gib_of(optimizer)), (std::vector{Tier::Disk, Tier::Resident, Tier::Resident}));
  EXPECT_EQ(tiers_within(1.01 * gib_of(gradients)), (std::vector{Tier::Disk, Tier::Disk, Tier::Resident}));
  EXPECT_EQ(tiers_within(1.01 * gib_of(all)), (std::vector{Tier::Disk, Tier::Disk, Tier::Disk}));
  const RunSpec kept = run_spec({"memory.gradients=resident", "memory.parameters=resident"});
  EXPECT_NE(refusal(kept, 1.01 * gib_of(gradients)).find("; with memory.gradients=disk it holds "), std::string::npos);
}

TEST(MemoryLimit, ActivationsAreOnDiskWhereTheyAreWhatDoesNotFit) {
  const std::vector<std::string> many{"model.context=512", "train.batch=32", "train.microbatch=32",
                                      "memory.optimizer=resident"};
  const auto with = [&](const char* tier) {
    std::vector<std::string> all = many;
    all.push_back(cat("memory.activations=", tier));
    return run_spec(all);
  };
  ASSERT_LT(gib_of(with("disk")), 0.8 * gib_of(with("resident")));
  EXPECT_EQ(limited(with("auto"), 1.01 * gib_of(with("resident"))).memory.activations, Tier::Resident);
  RunSpec asked = with("auto");
  const RunSpec chosen = limited(asked, 1.01 * gib_of(with("disk")));
  EXPECT_EQ(chosen.memory.activations, Tier::Disk);
  asked.memory.limit_gb = 2;
  EXPECT_EQ(told_of_memory(asked, chosen),
            std::vector<std::string>{"memory.activations = \"disk\": the fastest that memory.limit_gb = 2 allows"});
  EXPECT_NE(refusal(with("resident"), 1.01 * gib_of(with("disk"))).find("; with memory.activations=disk it holds "),
            std::string::npos);
}

TEST(MemoryLimit, AutomaticRecomputationIsNoneWithoutALimit) {
  const RunSpec open = run_spec({"memory.recompute=auto"});
  EXPECT_EQ(within_memory_limit(open, host_limits()), run_spec());
  EXPECT_EQ(told_of_memory(open, run_spec()), std::vector<std::string>());
}

TEST(MemoryLimit, AutomaticRecomputationIsTheFastestThatFits) {
  const std::vector<std::string> layout{"memory.optimizer=resident", "train.batch=16", "model.context=256"};
  const auto with = [&](const char* policy) {
    std::vector<std::string> all = layout;
    all.push_back(cat("memory.recompute=", policy));
    return run_spec(all);
  };
  EXPECT_EQ(limited(with("auto"), 1.001 * gib_of(with("none"))).memory.recompute, "none");
  const double below = 0.999 * gib_of(with("none"));
  const RunSpec chosen = limited(with("auto"), below);
  EXPECT_NE(chosen.memory.recompute, "none");
  EXPECT_LE(gib_of(chosen), below);
  EXPECT_EQ(limited(chosen, below), chosen) << "the text is what a user may write";
  RunSpec asked = with("auto");
  asked.memory.limit_gb = 1;
  EXPECT_EQ(told_of_memory(asked, chosen)[0],
            cat("memory.recompute = \"", chosen.memory.recompute, "\": the fastest that memory.limit_gb = 1 allows"));
}

// To recompute little takes less time than to move the states of a step with few tokens, if backward does not hide the
// moves, and more than to move those of a step with many.
TEST(MemoryLimit, TierAndRecomputationAreChosenTogether) {
  const RunSpec few = run_spec({"mesh.data=2", "train.batch=16", "memory.optimizer=resident"});
  RunSpec chosen = limited(run_spec({"mesh.data=2", "train.batch=16", "memory.recompute=auto"}), 0.997 * gib_of(few));
  EXPECT_EQ(chosen.memory.optimizer, Tier::Resident);
  EXPECT_NE(chosen.memory.recompute, "none");
  const std::vector<std::string> many{"model.context=512", "train.batch=32", "train.microbatch=32",
                                      "memory.optimizer=resident"};
  const double limit = 0.95 * gib_of(run_spec(many));
  EXPECT_EQ(limited(run_spec({many[0], many[1], many[2], "memory.recompute=auto"}), limit).memory.optimizer,
            Tier::Disk);
}

TEST(MemoryLimit, CopiesForCheckpointsCount) {
  const RunSpec plain = run_spec({"memory.optimizer=resident"});
  const RunSpec async = run_spec({"memory.optimizer=resident", "checkpoint.async=true"});
  EXPECT_NE(refusal(async, 1.01 * gib_of(plain)).find("snapshots "), std::string::npos);
}

TEST(MemoryLimit, SmallStatesStayInMemoryWhereChunksWouldNeedMore) {
  const RunSpec resident = run_spec({"memory.optimizer=resident", "memory.chunk_mb=64"});
  const RunSpec disk = run_spec({"memory.optimizer=disk", "memory.chunk_mb=64"});
  ASSERT_LT(gib_of(resident), gib_of(disk));
  const double limit = 0.99 * gib_of(resident);
  EXPECT_EQ(refusal(run_spec({"memory.chunk_mb=64"}), limit), refusal(resident, limit));
}

TEST(MemoryLimit, WhatDoesNotFitIsRefusedWithTheBytesAndWithChangesThatFit) {
  const RunSpec some = run_spec({"memory.gradients=resident", "memory.parameters=resident"});
  const std::string said = refusal(some, 0.9 * gib_of(run_spec({"memory.optimizer=disk"})));
  EXPECT_NE(said.find("memory.limit_gb = "), said.npos) << said;
  EXPECT_NE(said.find("must hold what a rank needs: the fullest would hold "), said.npos) << said;
  EXPECT_NE(said.find("gradients "), said.npos) << said;
  EXPECT_NE(said.find("; with "), said.npos) << said;
  EXPECT_NE(said.find("a step takes "), said.npos) << said;
  const RunSpec resident = run_spec({"memory.optimizer=resident"});
  EXPECT_NE(refusal(resident, 0.72 * gib_of(resident)).find("; with memory.optimizer=disk it holds "), said.npos);
}

TEST(MemoryLimit, WhatNothingMakesFitSaysSo) {
  EXPECT_NE(refusal(run_spec(), 0.001).find("; no tier, recomputation, ZeRO stage or smaller microbatch makes it fit"),
            std::string::npos);
}

// Updates of whole matrices cannot be on disk, so "auto" does not put them there.
TEST(MemoryLimit, AutoIsADiskOnlyWhereTheRunAllowsOne) {
  const RunSpec muon = run_spec({"optimizer.kind=muon"});
  const std::string said = refusal(muon, 0.99 * gib_of(muon));
  EXPECT_NE(said.find("must hold what a rank needs"), said.npos) << said;
  EXPECT_EQ(said.find("memory.optimizer"), said.npos) << said;
}

}  // namespace
}  // namespace braid::train::memory_limit_test
