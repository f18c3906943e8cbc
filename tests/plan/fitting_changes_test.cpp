// The changes that make a run fit: each fits when it is predicted by itself, none changes more than it must.
#include "braid/plan/fitting_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "braid/base/errors.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/plan/predict_run.h"
#include "braid/spec/parse.h"
#include "braid/spec/problems.h"

namespace braid::plan::fitting_changes_test {
namespace {

RunSpec run_spec(const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all = {"data.paths=[text]",  "model.family=llama",   "model.layers=6",    "model.heads=8",
                                  "model.width=512",    "model.context=256",    "model.vocab=8192",  "train.batch=32",
                                  "train.microbatch=8", "train.dtype=bfloat16", "optimizer.lr=0.001"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return spec::parse_run("", "test", all);
}

std::vector<std::string> words_of(const std::string& overrides) {
  std::istringstream text(overrides);
  return {std::istream_iterator<std::string>(text), {}};
}

bool is_legal(const RunSpec& spec) { return spec::problems(spec, {16, 1}).empty(); }

int64_t bytes_of(const RunSpec& spec) { return predict_run(spec, nominal_cluster(spec)).most_bytes(); }

// Returns false for a run that is refused: tiers of gradients and parameters need that of the optimizer.
bool fits(const std::vector<std::string>& overrides, int64_t limit) {
  try {
    return bytes_of(run_spec(overrides)) <= limit;
  } catch (const ConfigError&) {
    return false;
  }
}

TEST(FittingChanges, FitAndAreSortedByTime) {
  for (const double fraction : {0.9, 0.7, 0.5, 0.35}) {
    const auto limit = static_cast<int64_t>(fraction * static_cast<double>(bytes_of(run_spec({"mesh.data=2"}))));
    const auto changes = fitting_changes(run_spec({"mesh.data=2"}), limit, 3, is_legal);
    ASSERT_FALSE(changes.empty()) << fraction;
    double before = 0;
    for (const FittingChange& change : changes) {
      std::vector<std::string> overrides = words_of(change.overrides);
      overrides.push_back("mesh.data=2");
      EXPECT_EQ(bytes_of(run_spec(overrides)), change.bytes) << change.overrides;
      EXPECT_LE(change.bytes, limit) << change.overrides;
      EXPECT_GE(change.times, before) << change.overrides;
      before = change.times;
    }
  }
}

// A run that says which blocks are on disk gets changes that say it too.
TEST(FittingChanges, FitARunWithSomeBlocksOnDisk) {
  const std::vector<std::string> given = {"memory.activations=disk", "memory.activation_blocks=1",
                                          "train.dtype=float32"};
  const RunSpec spec = run_spec(given);
  int num_moving = 0;
  for (const double fraction : {0.95, 0.9, 0.8, 0.7, 0.6}) {
    const auto limit = static_cast<int64_t>(fraction * static_cast<double>(bytes_of(spec)));
    for (const FittingChange& change : fitting_changes(spec, limit, 3, is_legal)) {
      std::vector<std::string> overrides = words_of(change.overrides);
      const auto says_blocks = [](const std::string& word) { return word.starts_with("memory.activation_blocks="); };
      const bool moves = std::ranges::any_of(overrides, says_blocks);
      overrides.insert(overrides.begin(), given.begin(), given.end());
      if (moves) overrides.erase(overrides.begin() + 1), ++num_moving;
      EXPECT_EQ(bytes_of(run_spec(overrides)), change.bytes) << change.overrides;
      EXPECT_LE(change.bytes, limit) << change.overrides;
    }
  }
  EXPECT_GT(num_moving, 0);
}

TEST(FittingChanges, EveryPartOfAChangeIsNeeded) {
  const auto limit = bytes_of(run_spec()) * 2 / 5;
  for (const FittingChange& change : fitting_changes(run_spec(), limit, 3, is_legal)) {
    const std::vector<std::string> overrides = words_of(change.overrides);
    for (size_t without = 0; without < overrides.size(); ++without) {
      std::vector<std::string> fewer = overrides;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(without));
      EXPECT_FALSE(fits(fewer, limit)) << change.overrides << " without " << overrides[without];
    }
  }
}

TEST(FittingChanges, ListRecomputedBlocksWhereNoWordIsAsFast) {
  const RunSpec spec = run_spec({"optimizer.kind=muon", "train.microbatch=4"});
  int num_lists = 0;
  for (const double fraction : {0.97, 0.93, 0.9, 0.87, 0.83, 0.8}) {
    const auto limit = static_cast<int64_t>(fraction * static_cast<double>(bytes_of(spec)));
    const auto changes = fitting_changes(spec, limit, 3, is_legal);
    for (const FittingChange& change : changes) {
      if (change.overrides.find("memory.recompute=blocks:") != std::string::npos) ++num_lists;
    }
  }
  EXPECT_GE(num_lists, 1);
}

// A run that leaves recomputation open has it chosen with each change, so no change names it.
TEST(FittingChanges, OfOpenRecomputationNameOtherKeys) {
  const RunSpec spec = run_spec({"memory.recompute=auto"});
  const auto changes = fitting_changes(spec, bytes_of(spec) / 3, 3, is_legal);
  EXPECT_FALSE(changes.empty());
  for (const FittingChange& change : changes) {
    EXPECT_EQ(change.overrides.find("memory.recompute"), std::string::npos) << change.overrides;
  }
}

TEST(FittingChanges, NoneIsIllegalAndNoneMayFit) {
  const RunSpec muon = run_spec({"optimizer.kind=muon"});
  for (const FittingChange& change : fitting_changes(muon, bytes_of(muon) * 9 / 10, 3, is_legal)) {
    EXPECT_EQ(change.overrides.find("memory.optimizer"), std::string::npos) << change.overrides;
  }
  EXPECT_TRUE(fitting_changes(run_spec(), 1000, 3, is_legal).empty());
}

}  // namespace
}  // namespace braid::plan::fitting_changes_test
