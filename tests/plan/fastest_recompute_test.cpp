// The policies that "auto" stands for, against every fixed policy.
#include "braid/plan/fastest_recompute.h"

#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/spec/parse.h"
#include "braid/spec/partition.h"
#include "braid/spec/problems.h"
#include "braid/spec/recompute.h"

namespace braid::plan::fastest_recompute_test {
namespace {

using Overrides = std::vector<std::string>;

RunSpec run_spec(const Overrides& overrides = {}) {
  Overrides all = {"data.paths=[text]", "model.layers=8",  "model.heads=4",      "model.width=128",
                   "model.context=64",  "model.vocab=512", "train.microbatch=4", "train.batch=32"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return spec::parse_run("", "test", all);
}

bool is_legal(const RunSpec& spec) { return spec::problems(spec, {16, 1}).empty(); }

Prediction predicted(RunSpec spec, const std::string& policies) {
  spec.memory.recompute = policies;
  EXPECT_TRUE(is_legal(spec)) << policies;
  return nominal_prediction(spec).value();
}

std::vector<std::string> fixed_policies(const RunSpec& spec) {
  std::vector<std::string> all = {"none", "selective", "full"};
  for (int blocks = 2; blocks <= spec.model.layers; ++blocks) all.push_back(cat("every:", blocks));
  return all;
}

const std::vector<Overrides>& layouts() {
  static const std::vector<Overrides> kLayouts = {
      {},
      {"model.family=llama", "model.kv_heads=2"},
      {"model.family=gemma2", "model.kv_heads=2", "model.window=16"},
      {"model.family=bert"},
      {"model.dropout=0.1", "train.dtype=bfloat16"},
      {"mesh.pipe=2"},
      {"mesh.pipe=4", "pipeline.schedule=gpipe"},
      {"mesh.pipe=2", "pipeline.partition=\"3.5,4.5\""},
      {"mesh.pipe=2", "pipeline.schedule=zb-h1"},
      {"mesh.pipe=2", "pipeline.schedule=zb-v"},
      {"mesh.pipe=2", "pipeline.schedule=interleaved"},
      {"mesh.pipe=2", "pipeline.schedule=dualpipe"},
      {"mesh.data=2", "sync.zero=3"},
      {"mesh.tensor=2", "mesh.sequence_parallel=true"},
      {"optimizer.groups=[{match = \"w?e.*\", frozen = true}, {match = \"blocks.[01].*\", frozen = true}]",
       "model.output_weights=untied"},
  };
  return kLayouts;
}

// Returns limits from the least that a fixed policy needs up to what "none" needs.
std::vector<int64_t> limits_of(const RunSpec& spec) {
  int64_t least = predicted(spec, "none").most_bytes();
  const int64_t none = least;
  for (const std::string& policy : fixed_policies(spec)) least = std::min(least, predicted(spec, policy).most_bytes());
  std::vector<int64_t> limits;
  for (int tenth = 0; tenth <= 10; ++tenth) limits.push_back(least + (none - least) * tenth / 10);
  return limits;
}

TEST(FastestRecompute, FitsAndIsNeverSlowerThanAFixedPolicyThatFits) {
  for (const Overrides& overrides : layouts()) {
    const RunSpec spec = run_spec(overrides);
    double before = std::numeric_limits<double>::infinity();
    for (const int64_t limit : limits_of(spec)) {
      SCOPED_TRACE(cat(joined(overrides), ", ", limit));
      const RecomputePlan found = fastest_recompute(spec, limit, is_legal).value();
      const double seconds = found.prediction.step_seconds();
      EXPECT_EQ(predicted(spec, found.policies), found.prediction);
      EXPECT_LE(found.prediction.most_bytes(), limit) << found.policies;
      EXPECT_LE(seconds, before * (1 + 1e-12)) << "more memory is never slower: " << found.policies;
      before = seconds;
      for (const std::string& policy : fixed_policies(spec)) {
        const Prediction fixed = predicted(spec, policy);
        if (fixed.most_bytes() > limit) continue;
        EXPECT_LE(seconds, fixed.step_seconds() * (1 + 1e-12)) << found.policies << " against " << policy;
      }
    }
  }
}

// Returns the shortest predicted step that fits, of those with a fixed policy and all blocks or none on disk.
double fastest_fixed(const RunSpec& on_disk, int64_t limit) {
  double least = std::numeric_limits<double>::infinity();
  for (const char* blocks : {"0", "all"}) {
    RunSpec spec = on_disk;
    spec.memory.activation_blocks = blocks;
    for (const std::string& policy : fixed_policies(spec)) {
      const Prediction prediction = predicted(spec, policy);
      if (prediction.most_bytes() <= limit) least = std::min(least, prediction.step_seconds());
    }
  }
  return least;
}

// Under each limit the step is at most as long as without moves, and as with every fixed policy in memory and on disk.
// Under some it is shorter than all of these, because a part of the blocks moves.
TEST(FastestRecompute, MovesBlocksWhereThatIsFaster) {
  int num_faster = 0;
  for (const Overrides& layout :
       {Overrides{}, Overrides{"mesh.pipe=2"}, Overrides{"mesh.pipe=2", "pipeline.schedule=zb-h1"}}) {
    const RunSpec spec = run_spec(layout);
    RunSpec on_disk = spec;
    on_disk.memory.activations = Tier::Disk;
    for (const int64_t limit : limits_of(spec)) {
      SCOPED_TRACE(cat(joined(layout), ", ", limit));
      const RecomputePlan found = fastest_recompute(on_disk, limit, is_legal).value();
      RunSpec chosen = on_disk;
      found.apply(chosen.memory);
      EXPECT_EQ(nominal_prediction(chosen), found.prediction);
      EXPECT_LE(found.prediction.most_bytes(), limit);
      const double without = fastest_recompute(spec, limit, is_legal)->prediction.step_seconds();
      const double other = std::min(without, fastest_fixed(on_disk, limit)), seconds = found.prediction.step_seconds();
      EXPECT_LE(seconds, other * (1 + 1e-12)) << found.policies;
      if (seconds < other * (1 - 1e-12)) ++num_faster;
    }
  }
  EXPECT_GE(num_faster, 5);
}

TEST(FastestRecompute, IsNoneWithoutNeed) {
  for (const Overrides& overrides : layouts()) {
    const RunSpec spec = run_spec(overrides);
    const int64_t none = predicted(spec, "none").most_bytes();
    EXPECT_EQ(fastest_recompute(spec, none, is_legal)->policies, "none");
    if (limits_of(spec).front() == none) continue;  // weight gradients that wait need more than activations
    EXPECT_NE(fastest_recompute(spec, none - 1, is_legal)->policies, "none") << joined(overrides);
  }
}

// Between two fixed policies there are many lists, so a limit between them is used better.
TEST(FastestRecompute, IsFasterThanEveryFixedPolicyUnderMostLimits) {
  const RunSpec spec = run_spec();
  const std::vector<int64_t> limits = limits_of(spec);
  int num_faster = 0;
  for (const int64_t limit : limits) {
    double fixed = std::numeric_limits<double>::infinity();
    for (const std::string& policy : fixed_policies(spec)) {
      const Prediction prediction = predicted(spec, policy);
      if (prediction.most_bytes() <= limit) fixed = std::min(fixed, prediction.step_seconds());
    }
    if (fastest_recompute(spec, limit, is_legal)->prediction.step_seconds() < fixed) ++num_faster;
  }
  EXPECT_GE(num_faster, 5);
}

TEST(FastestRecompute, StagesHaveWhatTheirMicrobatchesInFlightLeaveThem) {
  const RunSpec spec = run_spec({"mesh.pipe=4", "model.output_weights=untied", "model.vocab=257"});
  const int64_t none = predicted(spec, "none").most_bytes();
  const std::string policies = fastest_recompute(spec, none * 4 / 5, is_legal)->policies;
  EXPECT_FALSE(policies.starts_with("none")) << policies;
  EXPECT_TRUE(policies.ends_with(",none")) << policies;
}

TEST(FastestRecompute, WhatDoesNotFitNeedsLeast) {
  const RunSpec spec = run_spec();
  const auto found = fastest_recompute(spec, 1000, is_legal);
  for (const std::string& policy : fixed_policies(spec)) {
    EXPECT_LE(found->prediction.most_bytes(), predicted(spec, policy).most_bytes()) << policy;
  }
}

// A list of all blocks is another spelling of the same segments.
TEST(ListedBlocks, ArePredictedAsTheWordForThem) {
  for (const Overrides& overrides : layouts()) {
    const RunSpec spec = run_spec(overrides);
    const auto blocks = spec::stage_blocks(spec, spec::num_stages(spec));
    for (const int size : {1, 3}) {
      std::vector<std::string> lists;
      for (const int count : blocks) lists.push_back(cat("blocks:0-", count - 1, "/", size));
      const Prediction word = predicted(spec, cat("every:", size)), list = predicted(spec, joined(lists, ","));
      EXPECT_NEAR(list.step_seconds(), word.step_seconds(), 1e-9 * word.step_seconds()) << joined(overrides);
      EXPECT_EQ(list.most_bytes(), word.most_bytes()) << joined(overrides);
    }
  }
}

TEST(FastestRecompute, OfManyLayersTakesAMoment) {
  const RunSpec spec = run_spec({"model.layers=96"});
  const int64_t none = predicted(spec, "none").most_bytes(), full = predicted(spec, "full").most_bytes();
  for (const int quarter : {1, 2, 3}) {
    const int64_t limit = full + (none - full) * quarter / 4;
    EXPECT_LE(fastest_recompute(spec, limit, is_legal)->prediction.most_bytes(), limit);
  }
}

}  // namespace
}  // namespace braid::plan::fastest_recompute_test
