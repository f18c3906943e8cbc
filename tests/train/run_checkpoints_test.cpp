// Which checkpoints a run leaves: the newest, the best, across restarts too.
#include "braid/train/run_checkpoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "braid/ckpt/saved_checkpoints.h"
#include "tests/support/text_folder.h"

namespace braid::run_checkpoints_test {
namespace {

// Remembers losses; `given` stand for those of a run before it.
class Listener final : public RunObserver {
 public:
  void on_start(const RunStart&) override {}
  void on_step(const StepReport&) override {}
  void on_evaluation(const Evaluation& evaluation) override { losses[evaluation.step] = evaluation.loss; }
  bool knows_evaluation(int64_t step) override { return losses.contains(step); }
  std::map<int64_t, double> heard_evaluations() override { return losses; }
  void on_checkpoint(int64_t step, const std::string&) override { saved.push_back(step); }

  std::map<int64_t, double> losses;
  std::vector<int64_t> saved;
};

using Steps = std::vector<int64_t>;

class RunCheckpointsTest : public TextFolder {
 protected:
  RunSpec spec(const CheckpointSpec& kept) const {
    RunSpec spec;
    spec.model = {.layers = 2, .heads = 2, .width = 16, .context = 16};
    spec.data.paths = {path("text")};
    spec.train = {.steps = 8, .batch = 4, .microbatch = 2, .eval_every = 2, .eval_sequences = 4, .save_every = 2};
    spec.train.out = path("run");
    spec.checkpoint = kept;
    return spec;
  }
  static void run(const RunSpec& spec, Listener& listener) {
    std::filesystem::create_directories(spec.train.out);
    run_training(spec, listener, [] { return false; });
  }
  Steps left() const {
    Steps steps;
    for (const SavedCheckpoint& saved : saved_checkpoints(path("run"))) steps.push_back(saved.step);
    return steps;
  }
};

TEST_F(RunCheckpointsTest, TheNewestStay) {
  Listener listener;
  run(spec({.keep = 2}), listener);
  EXPECT_EQ(listener.saved, (Steps{2, 4, 6, 8}));
  EXPECT_EQ(left(), (Steps{8, 6}));
}

TEST_F(RunCheckpointsTest, TheBestStays) {
  Listener listener;
  run(spec({.keep = 1, .keep_best = 1}), listener);
  const auto better = [&](int64_t a, int64_t b) { return listener.losses.at(a) < listener.losses.at(b); };
  const Steps before{2, 4, 6};  // the last is evaluated when all is removed
  EXPECT_EQ(left(), (Steps{8, *std::ranges::min_element(before, better)}));
}

TEST_F(RunCheckpointsTest, ItStaysThroughARestart) {
  RunSpec first = spec({.keep = 2, .keep_best = 1});
  first.train.steps = 4;
  Listener listener;
  run(first, listener);
  ASSERT_EQ(left(), (Steps{4, 2}));
  listener.losses.at(2) = 0;  // of all that were and will be
  RunSpec rest = spec({.keep = 1, .keep_best = 1});
  rest.train.resume = rest.train.out + "/step-4";
  run(rest, listener);
  EXPECT_EQ(left(), (Steps{8, 2}));
}

}  // namespace
}  // namespace braid::run_checkpoints_test
