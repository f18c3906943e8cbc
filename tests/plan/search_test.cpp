// The search against its oracle, which predicts every layout: on predictions drawn at random, whose bounds hold.
#include "braid/plan/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "braid/base/digest.h"
#include "braid/base/text.h"
#include "braid/plan/reasons.h"
#include "tests/plan/exhaustive_search.h"

namespace braid::plan::search_test {
namespace {

// Steps and memory that are noise of a layout's keys, around what a bound knows.
class DrawnPredictor final : public Predictor {
 public:
  DrawnPredictor(uint64_t seed, int64_t memory_bytes) : seed_(seed), memory_bytes_(memory_bytes) {}

  Prediction predict(const RunSpec& spec) override {
    ++num_predictions;
    Prediction prediction;
    prediction.seconds.compute = least_seconds(spec) * (1 + draw(spec, "noise") / 3);
    prediction.memory_bytes = memory_bytes_;
    for (int rank = 0; rank < spec.mesh.pipe; ++rank) {
      const double kept = spec.memory.recompute == "none" ? 50 : 0;
      const double activations = kept + 50 * draw(spec, cat("rank", rank));
      prediction.memory.push_back({.parameters = least_bytes(spec), .activations = static_cast<int64_t>(activations)});
    }
    return prediction;
  }
  std::string balanced_partition(const RunSpec&) override { return "even"; }
  std::string balanced_shares(const RunSpec&) override { return kEqualShares; }
  double least_seconds(const RunSpec& spec) override {
    RunSpec work = spec;
    work.pipeline = {};
    work.sync = {};
    work.memory.recompute = "none";
    return 1 + 4 * draw(work, "seconds");
  }
  int64_t least_bytes(const RunSpec& spec) override {
    RunSpec states = spec;
    states.memory.recompute = "none";
    return static_cast<int64_t>(50 * (1 + draw(states, "bytes")));
  }

  int64_t num_predictions = 0;

 private:
  double draw(const RunSpec& spec, std::string_view what) const {
    const uint64_t numbers[] = {seed_,
                                uint64_t(spec.mesh.pipe),
                                uint64_t(spec.mesh.tensor),
                                uint64_t(spec.mesh.sequence_parallel),
                                uint64_t(spec.mesh.context),
                                uint64_t(spec.mesh.context_parallel),
                                uint64_t(spec.train.microbatch),
                                uint64_t(spec.pipeline.chunks),
                                uint64_t(spec.sync.zero),
                                digest_of(DigestKind::Xxh3, spec.pipeline.schedule),
                                digest_of(DigestKind::Xxh3, spec.memory.recompute),
                                digest_of(DigestKind::Xxh3, what)};
    const uint64_t mark = digest_of(DigestKind::Xxh3, std::as_bytes(std::span(numbers)));
    return static_cast<double>(mark % 1'000'003) / 1'000'003;
  }

  uint64_t seed_;
  int64_t memory_bytes_;
};

SearchRequest request(uint64_t seed) {
  SearchRequest request;
  request.space.num_devices = int64_t{1} << (seed % 5);
  RunSpec& run = request.space.run;
  run.model.layers = 2 + static_cast<int>(seed % 7);
  run.model.heads = 1 << (seed % 4);
  run.model.width = 64 * run.model.heads;
  run.model.context = seed % 3 == 0 ? 4096 : 1024;
  run.model.vocab = 257;
  request.space.on_cpus = seed % 2 == 0;
  run.train.batch = 4 << (seed % 4);
  run.data.paths = {"text"};
  request.memory_bytes = 120;
  return request;
}

std::vector<std::string> found(const Plan& plan) {
  std::vector<std::string> all;
  for (const PlannedLayout& layout : plan.layouts) {
    all.push_back(joined(layout.overrides, " ") + " " + exact(layout.prediction.step_seconds()));
  }
  return all;
}

TEST(Search, FindsWhatPredictingEveryLayoutFinds) {
  int64_t predicted = 0, all = 0;
  size_t with_some = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    DrawnPredictor predictor(seed, 120), oracle(seed, 120);
    const Plan plan = search(request(seed), predictor), wanted = exhaustive_search(request(seed), oracle);
    ASSERT_EQ(found(plan), found(wanted)) << seed;
    EXPECT_EQ(plan.searched, wanted.searched);
    with_some += wanted.layouts.empty() ? 0 : 1;
    predicted += predictor.num_predictions;
    all += oracle.num_predictions;
  }
  EXPECT_GT(with_some, 54u);
  EXPECT_LT(10 * predicted, all) << predicted;
}

TEST(Search, WhatIsPinnedStays) {
  SearchRequest pinned = request(3);
  pinned.space.run.mesh.tensor = 2;
  pinned.space.run.train.microbatch = 1;
  pinned.space.pinned = {"mesh.tensor", "train.microbatch"};
  DrawnPredictor predictor(3, 1000);
  const Plan plan = search(pinned, predictor);
  ASSERT_FALSE(plan.layouts.empty());
  for (const PlannedLayout& layout : plan.layouts) {
    EXPECT_EQ(layout.spec.mesh.tensor, 2);
    EXPECT_EQ(layout.spec.train.microbatch, 1);
  }
}

TEST(Search, ALayoutIsBetterThanItsNeighboursAndSaysHow) {
  const SearchRequest asked = request(4);
  DrawnPredictor predictor(4, 120);
  Plan plan = search(asked, predictor);
  ASSERT_FALSE(plan.layouts.empty());
  add_reasons(asked, plan.layouts, predictor);
  const std::string& why = plan.layouts[0].why;
  EXPECT_NE(why.find(" rather than "), std::string::npos) << why;
  EXPECT_TRUE(why.find("would need ") != std::string::npos || why.find("% longer") != std::string::npos) << why;
}

}  // namespace
}  // namespace braid::plan::search_test
