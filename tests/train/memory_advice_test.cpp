// Errors for want of memory in a run: what was predicted, and changes that fit.
#include "braid/train/memory_advice.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <iterator>
#include <new>
#include <numeric>
#include <sstream>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/memory_error.h"
#include "braid/base/text.h"
#include "braid/param/memory_account.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/spec/parse.h"
#include "braid/train/run.h"
#include "tests/support/text_folder.h"

namespace braid::train::memory_advice_test {
namespace {

RunSpec run_spec(const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all = {"data.paths=[text]",
                                  "model.layers=4",
                                  "model.heads=8",
                                  "model.width=512",
                                  "model.context=64",
                                  "model.vocab=8192",
                                  "train.batch=8",
                                  "train.microbatch=8",
                                  "memory.chunk_mb=1",
                                  "memory.activations=resident",
                                  "memory.optimizer=resident",
                                  "memory.gradients=resident",
                                  "memory.parameters=resident"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return spec::parse_run("", "test", all);
}

int64_t predicted(const RunSpec& spec) { return plan::nominal_prediction(spec).value().most_bytes(); }

std::string advised(const RunSpec& spec, const MemoryShortage& shortage) {
  try {
    with_memory_advice(spec, host_limits(), [&] { throw MemoryError("no memory", shortage); });
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

// Returns the overrides of each change.
std::vector<std::vector<std::string>> changes(const std::string& said) {
  std::vector<std::vector<std::string>> all;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) continue;
    std::istringstream words(line.substr(0, line.find(" # ")));
    all.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  return all;
}

TEST(MemoryAdvice, NamesThePredictionAndChangesThatFitEvenIfThePredictionIsTooLow) {
  const RunSpec spec = run_spec();
  constexpr int64_t kTooLow = 10 << 20;
  const int64_t limit = predicted(spec) + 1000;
  const std::string said = advised(spec, {0, limit - 500, kTooLow + 500 - 1000, limit});
  EXPECT_TRUE(said.starts_with(
      cat("no memory\npredicted for rank 0: ", human_bytes(static_cast<double>(predicted(spec))), " (parameters ")))
      << said;
  EXPECT_NE(said.find("\noverrides with which it fits, the fastest first:\n  "), said.npos) << said;
  const auto found = changes(said);
  EXPECT_GT(found.size(), 1u) << said;
  for (const std::vector<std::string>& overrides : found) {
    EXPECT_LE(predicted(run_spec(overrides)), limit - kTooLow) << joined(overrides);
  }
}

// A rank that the system stopped held as much as it could.
TEST(MemoryAdvice, OfARankThatTheSystemRefusedFitsInWhatItHeld) {
  const RunSpec spec = run_spec({"mesh.pipe=2", "pipeline.schedule=gpipe", "train.microbatch=1"});
  const int64_t held = predicted(spec) * 7 / 10;
  for (const std::vector<std::string>& overrides : changes(advised(spec, {1, held, 0, 0}))) {
    std::vector<std::string> all{"mesh.pipe=2", "pipeline.schedule=gpipe", "train.microbatch=1"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    EXPECT_LE(predicted(run_spec(all)), held) << joined(overrides);
  }
  EXPECT_NE(advised(spec, {1, held, 0, 0}).find("predicted for rank 1: "), std::string::npos);
  EXPECT_NE(
      advised(spec, {0, 1000, 0, 0}).find("no tier, recomputation, ZeRO stage or smaller microbatch needs at most"),
      std::string::npos);
  EXPECT_EQ(advised(spec, {-1, 0, 0, 0}), "no memory");
}

TEST(MemoryAdvice, OtherErrorsStayAsTheyAre) {
  const CommError lost({"a test", 0, 1, "left"});
  try {
    with_memory_advice(run_spec(), host_limits(), [&] { throw lost; });
    FAIL();
  } catch (const CommError& error) {
    EXPECT_STREQ(error.what(), lost.what());
  }
}

// Asks for memory on rank 0's thread.
class Greedy final : public RunObserver {
 public:
  explicit Greedy(std::function<void()> asks) : asks_(std::move(asks)) {}

  void on_start(const RunStart&) override {}
  void on_step(const StepReport&) override { asks_(); }
  void on_evaluation(const Evaluation&) override {}
  void on_checkpoint(int64_t, const std::string&) override {}

 private:
  std::function<void()> asks_;
};

class MemoryAdviceOfRun : public TextFolder {
 protected:
  std::string error_of(RunSpec spec, const std::function<void()>& asks) {
    spec.data.paths = {path("text")};
    spec.train.out = path("run");
    Greedy observer(asks);
    try {
      run_training(spec, observer, {[] { return false; }});
    } catch (const RunError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(MemoryAdviceOfRun, FollowsTheAccountOfTheRank) {
  RunSpec spec = run_spec({"model.vocab=257", "model.width=64", "model.layers=2", "train.batch=16", "train.steps=2",
                           "mesh.data=2", "train.peak_flops=1e12"});
  // Tensors of other tests of this process may be alive, and are in the account too.
  const std::array<int64_t, param::kNumMemoryCategories> others = param::memory_use(0).bytes;
  const auto before = static_cast<double>(std::accumulate(others.begin(), others.end(), int64_t{0}));
  spec.memory.limit_gb = std::ldexp(before + static_cast<double>(predicted(spec)) * 1.05, -30);
  const std::string limited = error_of(spec, [] { at::empty({int64_t{1} << 30}, at::kByte); });
  EXPECT_TRUE(limited.starts_with("rank 0 needs 1.0 GiB more for other, beyond memory.limit_gb (")) << limited;
  EXPECT_NE(limited.find("; it holds "), limited.npos) << limited;
  EXPECT_NE(limited.find(" (parameters "), limited.npos) << limited;
  EXPECT_NE(limited.find("\npredicted for rank 0: "), limited.npos) << limited;
  spec.memory.limit_gb = 0;
  const std::string refused = error_of(spec, [] { at::empty({int64_t{1} << 50}, at::kByte); });
  EXPECT_TRUE(refused.starts_with("there is no memory for 1024.0 TiB more; rank 0 holds ")) << refused;
  EXPECT_NE(refused.find("\nno tier, recomputation, ZeRO stage or smaller microbatch needs at most 0 B"), refused.npos)
      << refused;
  const std::string thrown = error_of(spec, [] { throw std::bad_alloc(); });
  EXPECT_TRUE(thrown.starts_with("there is not enough memory; rank 0 has held ")) << thrown;
  EXPECT_NE(thrown.find("\npredicted for rank 0: "), thrown.npos) << thrown;
}

}  // namespace
}  // namespace braid::train::memory_advice_test
