// Properties of problems(): advice repairs, following it ends in a legal run, and legal runs keep the derived promises.
#include "braid/spec/problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "braid/base/text.h"
#include "braid/spec/assign.h"
#include "braid/spec/combine.h"
#include "braid/spec/partition.h"
#include "tests/support/dice.h"

namespace braid::spec::problems_test {
namespace {

// A stream of small choices.
// Often wrong in several ways, and never in a way without a nearest value.
RunSpec random_run(uint64_t seed) {
  Dice dice(seed);
  RunSpec spec;
  spec.data.paths = {"corpus.txt"};
  spec.model.layers = dice.between(0, 12);
  spec.model.heads = dice.between(0, 9);
  spec.model.width = dice.between(0, 64);
  spec.model.vocab = dice.between(-1, 300);
  spec.mesh = {dice.between(0, 9), dice.between(0, 9), dice.between(1, 2), dice.between(1, 2), dice.between(0, 9)};
  if (dice.between(0, 2) == 0) {
    Strings blocks(dice.between(1, 5));
    for (auto& count : blocks) count = exact(dice.between(0, 8) / 2.0);
    spec.pipeline.partition = joined(blocks, ",");
  } else if (dice.between(0, 2) == 0) {
    spec.pipeline.partition = dice.between(0, 1) == 0 ? "measured" : "some";
  }
  if (dice.between(0, 4) == 0) {
    spec.pipeline.speeds.assign(dice.between(1, 4), dice.between(0, 2));
    spec.memory.limit_gb = dice.between(-1, 2);
  }
  static const Strings kRecompute = {
      "none", "every:0",  "full,none", "selectiv,full,every:2", "blocks:0-2", "blocks:1,blocks:0+x",
      "auto", "none,auto"};
  spec.memory.recompute = kRecompute[dice.between(0, 7)];
  static const Strings kBlocks = {"all", "2", "1,0", "1.5", "one"};
  spec.memory.activation_blocks = kBlocks[dice.between(0, 4)];
  if (dice.between(0, 1) == 0) spec.memory.activations = Tier::Disk;
  spec.train.microbatch = dice.between(0, 5);
  spec.train.batch = dice.between(0, 70);
  spec.train.steps = dice.between(0, 20);
  spec.optimizer.warmup_steps = dice.between(-1, 30);
  spec.optimizer.decay_steps = dice.between(-1, 30);
  if (dice.between(0, 1) == 0) spec.train.reduction = Reduction::Reproducible;
  return spec;
}

RunSpec repaired(const RunSpec& spec, const Problem& problem) {
  RunSpec after = spec;
  const auto document = toml_document("value = " + problem.nearest, "nearest");
  EXPECT_TRUE(document.problems.empty()) << braid::text(problem);
  EXPECT_FALSE(assign(*find_field(problem.key), document.root.at(0).second, after)) << braid::text(problem);
  return after;
}

// The rule without its numbers, which change with the value.
std::string kind(const Problem& problem) {
  std::string rule = problem.key + problem.rule;
  std::erase_if(rule, [](char c) { return c >= '0' && c <= '9'; });
  return rule;
}

TEST(Nearest, RepairsItsProblem) {
  int num_problems = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const RunSpec spec = random_run(seed);
    for (const auto& problem : problems(spec, {32})) {
      if (problem.nearest.empty()) continue;
      ++num_problems;
      for (const auto& left : problems(repaired(spec, problem), {32})) {
        EXPECT_NE(kind(left), kind(problem)) << braid::text(problem) << "\nleaves\n" << braid::text(left);
      }
    }
  }
  EXPECT_GT(num_problems, 5000);
}

TEST(Nearest, FollowedToTheEndIsALegalRun) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    RunSpec spec = random_run(seed);
    auto left = problems(spec, {32});
    EXPECT_EQ(has_problems(spec, {32}), !left.empty()) << seed;
    for (int repairs = 0; !left.empty() && repairs < 40; ++repairs) {
      const auto next = std::find_if(left.begin(), left.end(), [](const Problem& p) { return !p.nearest.empty(); });
      ASSERT_NE(next, left.end()) << braid::text(left[0]);
      spec = repaired(spec, *next);
      left = problems(spec, {32});
    }
    EXPECT_TRUE(left.empty()) << "seed " << seed << ": " << (left.empty() ? "" : braid::text(left[0]));
    EXPECT_FALSE(has_problems(spec, {32})) << seed;
  }
}

TEST(Legal, KeepsWhatOtherRoomsRelyOn) {
  int num_legal = 0;
  for (uint64_t seed = 0; num_legal < 300; ++seed) {
    RunSpec spec = random_run(seed);
    spec.mesh.context = spec.mesh.expert = 1;
    int repairs = 0;
    for (auto left = problems(spec); !left.empty(); left = problems(spec)) {
      ASSERT_LT(++repairs, 60) << "seed " << seed << ": " << braid::text(left[0]);
      spec = repaired(spec, left[0]);
    }
    ++num_legal;
    EXPECT_EQ(4 * spec.model.width % spec.mesh.tensor, 0);
    EXPECT_EQ(spec.model.width % spec.mesh.tensor, 0);
    EXPECT_EQ(spec.train.batch % (spec.train.microbatch * spec.mesh.data), 0);
    if (spec.pipeline.partition == "measured") continue;
    const auto units = stage_units(spec, spec.mesh.pipe);
    EXPECT_EQ(static_cast<int>(units.size()), spec.mesh.pipe + 1);
    EXPECT_EQ(units.front(), 0);
    EXPECT_EQ(units.back(), 2 * spec.model.layers + 2);
  }
}

TEST(Legal, RanksAreCountedAlongAllAxes) {
  RunSpec spec;
  spec.mesh.data = 4;
  spec.mesh.expert = 8;
  spec.train.batch = 64;
  const auto found = problems(spec, {16});
  const auto of_data = std::find_if(found.begin(), found.end(), [](const Problem& p) { return p.key == "mesh.data"; });
  ASSERT_NE(of_data, found.end());
  EXPECT_NE(of_data->rule.find("(pipe 1 x data 4 x tensor 1 x expert 8 = 32)"), std::string::npos) << of_data->rule;
  EXPECT_EQ(of_data->nearest, "2");
}

TEST(Legal, WhatIsNotBuiltYetMayBePlannedWithoutData) {
  RunSpec spec;
  spec.mesh.tensor = 2;
  spec.model.experts = 4;
  spec.mesh.sequence_parallel = true;
  EXPECT_EQ(problems(spec, {.purpose = Purpose::Plan}).size(), 0u);
  EXPECT_EQ(problems(spec).size(), 2u);  // experts, and no data
  spec.mesh.context = 7;                 // does not divide the 256 tokens
  EXPECT_EQ(problems(spec, {.purpose = Purpose::Plan}).size(), 1u);
  spec.mesh.context = spec.mesh.tensor = 1;  // and sequence parallelism is among tensor ranks
  EXPECT_EQ(problems(spec, {.purpose = Purpose::Plan}).size(), 1u);
}

TEST(Legal, TheDefaultsWithDataAre) {
  RunSpec spec;
  EXPECT_EQ(problems(spec).size(), 1u);
  spec.data.paths = {"corpus.txt"};
  EXPECT_TRUE(problems(spec).empty());
}

// Divisors of zero, products that overflow and values outside every range, from a program instead of a file.
TEST(Problems, SurviveAnything) {
  RunSpec spec;
  for (const auto& field : fields()) {
    if (const auto* integer = std::get_if<Member<int>>(&field.slot)) (*integer)(spec) = 0;
  }
  EXPECT_FALSE(problems(spec).empty());
  for (const auto& field : fields()) {
    if (const auto* integer = std::get_if<Member<int>>(&field.slot)) (*integer)(spec) = INT32_MAX;
  }
  spec.pipeline.partition = "2147483647,1e300";
  EXPECT_FALSE(problems(spec).empty());
  spec.train.seed = UINT64_MAX;
  const auto all = problems(spec);
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Problem& problem) {
    return braid::text(problem) ==
           "train.seed = 18446744073709551615: must be at most 9223372036854775807; nearest valid is "
           "9223372036854775807";
  }));
}

TEST(Combine, IsSymmetricAndNamesRealKeys) {
  for (int a = 0; a < kNumFeatures; ++a) {
    const auto feature = static_cast<Feature>(a);
    EXPECT_TRUE(key(feature).empty() || find_field(key(feature))) << text(feature);
    for (int b = 0; b < kNumFeatures; ++b) {
      const auto other = static_cast<Feature>(b);
      EXPECT_EQ(combination(feature, other).verdict, combination(other, feature).verdict);
    }
  }
  for (const auto& pair : combinations()) {
    EXPECT_FALSE(pair.why.empty());
    EXPECT_NE(pair.verdict, Verdict::Supported) << text(pair.a) << " and " << text(pair.b) << " need no row";
  }
}

TEST(Combine, SeesWhatIsOn) {
  using enum spec::Feature;
  RunSpec spec;
  EXPECT_EQ(features(spec), (std::vector{TiedEmbedding, Clipping}));
  spec.mesh = {.pipe = 2, .data = 2, .tensor = 2};
  spec.optimizer.clip_norm = 0;
  spec.model.dropout = 0.1;
  EXPECT_EQ(features(spec), (std::vector{FlushPipeline, TiedEmbedding, Dropout, Data, Tensor}));
  EXPECT_TRUE(notes(spec).empty());
  spec.pipeline.schedule = "zb-v";
  EXPECT_EQ(features(spec), (std::vector{VShapedPipeline, TiedEmbedding, Dropout, Data, Tensor}));
  spec.pipeline.schedule = "gpipe";
  spec.train.reduction = Reduction::Reproducible;
  EXPECT_EQ(features(spec), (std::vector{FlushPipeline, TiedEmbedding, Dropout, Data, Tensor, Reproducible}));
  EXPECT_TRUE(notes(spec).empty());
  spec.model.family = ModelFamily::Llama, spec.model.kv_heads = 1;
  EXPECT_EQ(notes(spec), (Strings{"tensor ranks that share a key head add parts of its gradient, so reproducible "
                                  "reduction promises the same bits across data and pipe sizes at one mesh.tensor, not "
                                  "across tensor sizes"}));
}

TEST(Combinations, SayEachThingOnce) {
  std::set<std::pair<Feature, Feature>> seen;
  for (const Combination& row : combinations()) {
    EXPECT_TRUE(seen.insert(std::minmax(row.a, row.b)).second) << text(row.a) << " and " << text(row.b);
  }
}

}  // namespace
}  // namespace braid::spec::problems_test
