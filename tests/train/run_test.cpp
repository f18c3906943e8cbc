// A run as its observer hears it: every step, peaks that no step is above, evaluations with and without an
// interruption.
#include "braid/train/run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <vector>

#include "braid/base/text.h"
#include "tests/support/text_folder.h"

namespace braid::train::run_test {
namespace {

// Writes down what it hears, and wishes to stop after a step.
class Listener final : public RunObserver {
 public:
  explicit Listener(int64_t stop_after = 0) : stop_after_(stop_after) {}

  void on_start(const RunStart&) override {}
  void on_peak(const PeakFlops& peak) override { peaks.push_back(peak); }
  void on_step(const StepReport& report) override {
    steps.push_back(report.step);
    utilisations.push_back(report.utilisation);
    if (report.step == stop_after_) stops = true;
  }
  void on_evaluation(const Evaluation& evaluation) override { evaluations.push_back(evaluation); }
  bool knows_evaluation(int64_t step) override {
    asked.push_back(step);
    return knows;
  }
  void on_checkpoint(int64_t, const std::string&) override {}

  bool knows = false;  // the evaluation that it is asked for
  std::vector<int64_t> asked;
  std::vector<PeakFlops> peaks;
  std::vector<int64_t> steps;
  std::vector<double> utilisations;
  std::vector<Evaluation> evaluations;
  std::atomic<bool> stops = false;

 private:
  int64_t stop_after_;
};

class Run : public TextFolder {
 protected:
  RunSpec spec(const std::string& out) const {
    RunSpec spec;
    spec.model = {.layers = 2, .heads = 2, .width = 16, .context = 16};
    spec.data.paths = {path("text")};
    spec.train = {.steps = 6,
                  .batch = 4,
                  .microbatch = 2,
                  .reduction = Reduction::Reproducible,
                  .eval_every = 3,
                  .eval_sequences = 4};
    spec.train.out = path(out);
    return spec;
  }
  static RunEnd run(const RunSpec& spec, Listener& listener) {
    std::filesystem::create_directories(spec.train.out);
    return run_training(spec, listener, {[&] { return listener.stops.load(); }});
  }
};

TEST_F(Run, EveryStepIsHeardHoweverFewAreLogged) {
  RunSpec every_fourth = spec("run");
  every_fourth.train.log_every = 4;
  Listener listener;
  run(every_fourth, listener);
  EXPECT_EQ(listener.steps, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

// One floating-point operation per second is less than any step does.
TEST_F(Run, NoStepReachesMoreThanThePeak) {
  for (const int pipe : {1, 2}) {
    RunSpec slow = spec(cat("run", pipe));
    slow.mesh.pipe = pipe;
    slow.train.peak_flops = 1;
    Listener listener;
    run(slow, listener);
    ASSERT_GE(listener.peaks.size(), 2u);
    EXPECT_EQ(listener.peaks[0].source, PeakSource::Given);
    for (size_t i = 1; i < listener.peaks.size(); ++i) {
      EXPECT_EQ(listener.peaks[i].source, PeakSource::Step);
      EXPECT_GT(listener.peaks[i].per_rank, listener.peaks[i - 1].per_rank);
    }
    EXPECT_EQ(listener.utilisations[0], 1);
    for (const double share : listener.utilisations) EXPECT_LE(share, 1);
  }
}

TEST_F(Run, AnEvaluationThatWasDueWhenItStoppedIsMadeWhenItGoesOn) {
  Listener whole, first(3), rest;
  run(spec("whole"), whole);
  ASSERT_EQ(whole.evaluations.size(), 2u);
  const RunEnd stopped = run(spec("cut"), first);
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_TRUE(first.evaluations.empty()) << "who interrupts does not wait";
  RunSpec resumed = spec("cut");
  resumed.train.resume = stopped.checkpoint;
  run(resumed, rest);
  ASSERT_EQ(rest.evaluations.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(rest.evaluations[i].step, whole.evaluations[i].step);
    EXPECT_EQ(rest.evaluations[i].loss, whole.evaluations[i].loss);
    EXPECT_EQ(rest.evaluations[i].loss_per_byte, whole.evaluations[i].loss_per_byte);
  }
}

// The process may end between the two.
TEST_F(Run, AnEvaluationAfterASaveIsMadeOnceWhereverTheProcessEnds) {
  for (const int pipe : {1, 2}) {
    RunSpec both = spec(cat("run", pipe));
    both.mesh.pipe = pipe;
    both.train.save_every = 3;
    Listener whole, ended_before, ended_after;
    run(both, whole);
    ASSERT_EQ(whole.evaluations.size(), 2u);
    EXPECT_TRUE(whole.asked.empty());
    both.train.resume = both.train.out + "/step-3";
    both.train.out = path("before");
    run(both, ended_before);
    ASSERT_EQ(ended_before.evaluations.size(), 2u);
    EXPECT_EQ(ended_before.evaluations[0].step, 3);
    EXPECT_EQ(ended_before.evaluations[0].loss, whole.evaluations[0].loss);
    EXPECT_EQ(ended_before.asked, std::vector<int64_t>{3});
    both.train.out = path("after");
    ended_after.knows = true;
    run(both, ended_after);
    ASSERT_EQ(ended_after.evaluations.size(), 1u);
    EXPECT_EQ(ended_after.evaluations[0].step, 6);
  }
}

// A longer run has the steps already, and the process may have ended before the evaluation at its end.
TEST_F(Run, TheEvaluationAtTheEndIsMadeUpForByALongerRun) {
  for (const int every : {0, 4}) {  // 0: at the end alone
    RunSpec longer = spec(cat("run", every));
    longer.train.eval_every = every;
    Listener first, rest;
    run(longer, first);
    longer.train.resume = longer.train.out + "/step-6";
    longer.train.steps = 7;
    run(longer, rest);
    ASSERT_EQ(rest.evaluations.size(), 2u) << every;
    EXPECT_EQ(rest.evaluations[0].step, 6);
    EXPECT_EQ(rest.evaluations[0].loss, first.evaluations.back().loss);
  }
}

TEST_F(Run, AStepWithoutAnEvaluationOwesNone) {
  Listener first(4), rest;
  const RunEnd stopped = run(spec("cut"), first);
  EXPECT_EQ(first.evaluations.size(), 1u);
  RunSpec resumed = spec("cut");
  resumed.train.resume = stopped.checkpoint;
  run(resumed, rest);
  ASSERT_EQ(rest.evaluations.size(), 1u);
  EXPECT_EQ(rest.evaluations[0].step, 6);
}

// Every 401st token ends a document: it is predicted, and is no text.
TEST_F(Run, NatsPerByteOfBytesAreMoreThanPerTokenByTheEndsOfDocuments) {
  RunSpec longer = spec("run");
  longer.train.eval_sequences = 160;
  Listener listener;
  run(longer, listener);
  const Evaluation& last = listener.evaluations.back();
  const double num_tokens = 40 * 4 * 16, num_bytes = num_tokens * last.loss / last.loss_per_byte;
  EXPECT_NEAR(num_tokens - num_bytes, num_tokens / 401, 1);
}

}  // namespace
}  // namespace braid::train::run_test
