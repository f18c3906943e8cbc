// A run that goes back after a spike: to its newest checkpoint, on past the samples since, a bounded number of times.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/retention.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/mesh/device_mesh.h"
#include "braid/train/run.h"
#include "braid/train/run_data.h"
#include "braid/train/trainer.h"
#include "tests/support/text_folder.h"

namespace braid::train::rollback_test {
namespace {

struct Step {
  double loss;
  uint64_t samples;
  bool operator==(const Step&) const = default;
};

// The steps that count, as an observer must keep them.
class Listener final : public RunObserver {
 public:
  void on_start(const RunStart& start) override { spec = start.spec; }
  void on_step(const StepReport& report) override {
    EXPECT_EQ(report.step, static_cast<int64_t>(steps.size()) + 1);
    steps.push_back({report.loss, report.sample_hash});
  }
  void on_evaluation(const Evaluation&) override {}
  void on_checkpoint(int64_t step, const std::string&) override { saved.push_back(step); }
  void on_rollback(int64_t step, const std::string& why) override {
    EXPECT_EQ(step, saved.empty() ? 0 : saved.back()) << why;
    batch += static_cast<int64_t>(steps.size()) + 1 - step;  // of the steps since, and the spike's own
    EXPECT_NE(why.find(cat("and on from batch ", step + batch + 1, " of the data")), why.npos) << why;
    steps.resize(static_cast<size_t>(step));
    back_to.push_back(step);
  }

  RunSpec spec;
  std::vector<Step> steps;
  std::vector<int64_t> saved, back_to;
  int64_t batch = 0;  // so many were passed over
};

class Rollback : public TextFolder {
 protected:
  // With a rate that hardly learns, so that losses are above their mean by more than the threshold now and then.
  RunSpec spec(const std::string& out) const {
    RunSpec spec;
    spec.model = {.layers = 2, .heads = 2, .width = 16, .context = 16};
    spec.data.paths = {path("text")};
    spec.train = {.steps = 40, .batch = 4, .microbatch = 2, .eval_sequences = 4, .save_every = 4};
    spec.optimizer.lr = 1e-4;
    spec.train.on_spike = OnSpike::Rollback;
    spec.train.spike_threshold = 0.8;
    spec.train.out = path(out);
    return spec;
  }
  static RunEnd run(const RunSpec& spec, Listener& listener) {
    std::filesystem::create_directories(spec.train.out);
    return run_training(spec, listener, {[] { return false; }});
  }

  // By hand: a trainer that goes on from `checkpoint` (empty: from the beginning) at `batch`.
  static std::vector<Step> steps_after(const RunSpec& spec, const std::string& checkpoint, int64_t batch) {
    const RunData data(spec.data, "");
    const data::Corpus corpus = data.corpus(spec);
    std::vector<Step> steps;
    run_ranks(mesh::DeviceMesh(spec.mesh).num_ranks(), [&](Communicator& world) {
      at::get_num_threads();
      at::set_num_threads(1);
      Trainer trainer(spec, corpus, world);
      if (!checkpoint.empty()) trainer.load(checkpoint);
      trainer.go_on_at(batch);
      while (trainer.num_steps() < spec.train.steps) {
        const StepReport report = trainer.step();
        if (!report.spike.empty()) return;
        if (world.rank() == 0) steps.push_back({report.loss, report.sample_hash});
      }
    });
    return steps;
  }
};

TEST_F(Rollback, GoesBackToTheNewestCheckpointAndOnBehindTheSamplesSince) {
  for (const int pipe : {1, 2}) {
    SCOPED_TRACE(pipe);
    RunSpec given = spec(cat("run", pipe));
    given.mesh.pipe = pipe;
    given.train.threads = 1;
    Listener listener;
    run(given, listener);
    EXPECT_EQ(listener.steps.size(), 40u);
    ASSERT_FALSE(listener.back_to.empty()) << "no spike: another threshold is needed";
    const int64_t from = listener.back_to.back();
    ASSERT_GT(from, 0);
    const auto steps = steps_after(listener.spec, cat(given.train.out, "/step-", from), from + listener.batch);
    EXPECT_EQ(steps, std::vector<Step>(listener.steps.begin() + from, listener.steps.end()));
    RunSpec straight = listener.spec;  // a run that sees all samples
    straight.train.steps += static_cast<int>(listener.batch);
    straight.train.spike_threshold = 0;
    const auto all = steps_after(straight, "", 0);
    for (size_t step = static_cast<size_t>(from); step < listener.steps.size(); ++step) {
      EXPECT_EQ(listener.steps[step].samples, all[step + static_cast<size_t>(listener.batch)].samples) << step;
    }
  }
}

std::string error_of(const RunSpec& spec, Listener& listener) {
  std::filesystem::create_directories(spec.train.out);
  try {
    run_training(spec, listener, {[] { return false; }});
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

// Without a rate to learn by, a loss is above its mean at every second step.
TEST_F(Rollback, ThreeTimesToOneCheckpointAreEnough) {
  for (const int save_every : {0, 16}) {
    SCOPED_TRACE(save_every);
    RunSpec given = spec(cat("run", save_every));
    given.train.spike_threshold = 1e-9;
    given.train.save_every = save_every;
    Listener listener;
    const std::string error = error_of(given, listener);
    const std::string place = save_every == 0 ? "the beginning" : given.train.out + "/step-16";
    EXPECT_NE(error.find(cat("; the run has gone back to ", place, " 3 times")), error.npos) << error;
    EXPECT_EQ(listener.back_to, std::vector<int64_t>(3, save_every == 0 ? 0 : 16));
  }
}

// As the run that wrote a checkpoint would remove it (checkpoint.keep) while this one trains on from it.
class RemovesAtFirstStep final : public RunObserver {
 public:
  explicit RemovesAtFirstStep(std::string directory) : directory_(std::move(directory)) {}
  void on_start(const RunStart&) override {}
  void on_step(const StepReport& report) override {
    PosixFileSystem files;
    if (saved.empty()) is_removed = is_removed || ckpt::remove_checkpoint({4, directory_}, files);
    last_step = report.step;
  }
  void on_evaluation(const Evaluation&) override {}
  void on_checkpoint(int64_t step, const std::string&) override {
    PosixFileSystem files;
    saved.push_back(step);
    if (!is_removed) is_removed_later = is_removed_later || ckpt::remove_checkpoint({4, directory_}, files);
  }
  void on_rollback(int64_t step, const std::string&) override { back_to.push_back(step); }

  bool is_removed = false, is_removed_later = false;
  std::vector<int64_t> saved, back_to;
  int64_t last_step = 0;

 private:
  const std::string directory_;
};

// The checkpoint of the beginning is held until the first one of its own is there.
TEST_F(Rollback, BeforeTheFirstSaveTheCheckpointOfTheBeginningIsThere) {
  RunSpec first = spec("first");
  first.train.steps = 4;
  Listener listener;
  run(first, listener);
  RunSpec rest = spec("rest");
  rest.train.resume = first.train.out + "/step-4";
  rest.train.spike_threshold = 1e-9;
  rest.train.save_every = 0;
  rest.train.steps = 60;
  RemovesAtFirstStep observer(rest.train.resume);
  std::filesystem::create_directories(rest.train.out);
  std::string error;
  try {
    run_training(rest, observer, {[] { return false; }});
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  EXPECT_FALSE(observer.is_removed);
  EXPECT_EQ(observer.back_to, std::vector<int64_t>(3, 4));
  EXPECT_NE(error.find("/step-4 3 times"), error.npos) << error;
}

TEST_F(Rollback, AfterTheFirstSaveTheCheckpointOfTheBeginningMayGo) {
  RunSpec first = spec("first");
  first.train.steps = 4;
  Listener listener;
  run(first, listener);
  for (const bool async : {false, true}) {
    RunSpec rest = spec(cat("rest", async));
    rest.train.resume = first.train.out + "/step-4";
    rest.train.spike_threshold = 0;
    rest.train.steps = 9;
    rest.checkpoint.async = async;
    RemovesAtFirstStep observer(rest.train.resume);
    std::filesystem::create_directories(rest.train.out);
    std::filesystem::copy(rest.train.resume, path("kept"), std::filesystem::copy_options::recursive);
    run_training(rest, observer, {[] { return false; }});
    EXPECT_FALSE(observer.is_removed);
    EXPECT_TRUE(observer.is_removed_later);
    std::filesystem::rename(path("kept"), rest.train.resume);
  }
}

// Also one that is written while training goes on.
TEST_F(Rollback, WaitsForACheckpointThatIsUnderWay) {
  RunSpec waits = spec("waits"), behind = spec("behind");
  behind.checkpoint.async = true;
  Listener of_waits, of_behind;
  run(waits, of_waits);
  run(behind, of_behind);
  EXPECT_EQ(of_behind.back_to, of_waits.back_to);
  EXPECT_EQ(of_behind.steps, of_waits.steps);
}

}  // namespace
}  // namespace braid::train::rollback_test
