// The loop of a run around what it finds between steps.
#include "braid/train/rank_loop.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/support/failing_communicator.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::rank_loop_test {
namespace {

// The inputs of a loop that trains the run `start` on tiny_corpus(). Both arguments outlive this.
struct LoopInputs {
  LoopInputs(const RunStart& start, RunObserver& observer)
      : evaluated(start.spec, corpus.validation, std::vector<int>(19, 1)), shared{start,    corpus, choices, evaluated,
                                                                                  observer, none,   controls} {}

  const data::Corpus corpus = tiny_corpus();
  EvaluatedText evaluated;
  ckpt::CheckpointReading none{""};
  const std::vector<std::string> choices;
  const RunControls controls{[] { return false; }};
  const SharedByRanks shared;
};

// Flips a bit of rank 0's weights when it has heard of step 3.
class Damage final : public RunObserver {
 public:
  void on_start(const RunStart&) override {}
  void on_step(const StepReport& report) override {
    num_steps = report.step;
    if (report.step != 3) return;
    const at::Tensor weight = trainer->model().params()["blocks.0.ln_1.weight"].data.detach();
    *static_cast<unsigned char*>(weight.mutable_data_ptr()) ^= 4;
  }
  void on_evaluation(const Evaluation&) override {}
  void on_checkpoint(int64_t step, const std::string&) override { saved.push_back(step); }

  Trainer* trainer = nullptr;  // of rank 0
  int64_t num_steps = 0;
  std::vector<int64_t> saved;
};

class ComparedReplicas : public ScratchFolder {};

TEST_F(ComparedReplicas, EveryFewStepsAndBeforeASave) {
  RunStart start;
  start.spec = tiny_spec(2, 6);
  start.spec.model.layers = 2;
  start.spec.mesh.data = 3;
  start.spec.train.steps = 10;
  start.spec.train.save_every = 2;
  start.spec.train.check_replicas = 2;
  start.spec.train.out = folder_;
  Damage observer;
  const LoopInputs inputs(start, observer);
  const auto run = [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    Trainer trainer(start.spec, inputs.corpus, world);
    if (world.rank() == 0) observer.trainer = &trainer;
    RankLoop(inputs.shared, trainer, world).run();
  };
  try {
    run_ranks(3, run);
    ADD_FAILURE() << "rank 0 has other weights";
  } catch (const RunError& error) {
    EXPECT_EQ(std::string(error.what()).find("after step 4, rank 0: the copy of the weights of "), 0u) << error.what();
  }
  EXPECT_EQ(observer.num_steps, 4);
  EXPECT_EQ(observer.saved, std::vector<int64_t>{2});
}

// Fails one of the measurements that follow the peak.
class Unforeseen final : public RunObserver {
 public:
  void on_start(const RunStart&) override {}
  void on_step(const StepReport& report) override { num_steps = report.step; }
  void on_peak(const PeakFlops&) override {
    if (count.fails_after < 0) count.fails_after = count.calls + 3;
  }
  void on_prediction(const plan::Prediction&) override { ADD_FAILURE() << "of rates that were not measured"; }
  void on_choice(const std::string& choice) override { choices.push_back(choice); }
  void on_evaluation(const Evaluation&) override {}
  void on_checkpoint(int64_t, const std::string&) override {}

  CallCount count{.fail = [] { throw RunError("there is no memory for it"); }};
  int64_t num_steps = 0;
  std::vector<std::string> choices;
};

class Silent final : public RunObserver {
 public:
  void on_start(const RunStart&) override {}
  void on_step(const StepReport&) override {}
  void on_prediction(const plan::Prediction&) override { ++num_predictions; }
  void on_evaluation(const Evaluation&) override {}
  void on_checkpoint(int64_t, const std::string&) override {}

  int num_predictions = 0;
};

class CallsOfARun : public ScratchFolder {};

// An error of a run names the op of the call that a rank was in.
TEST_F(CallsOfARun, HaveNames) {
  RunStart start;
  start.spec = tiny_spec(2, 96);
  start.spec.model.layers = 2;
  start.spec.model.width = 128;  // worth measuring
  start.spec.mesh.tensor = 2;
  start.spec.train.batch *= 2;
  start.spec.train.steps = 4;
  start.spec.train.save_every = 2;
  start.spec.train.eval_sequences = 2;
  start.spec.train.out = folder_;
  Silent observer;
  const LoopInputs inputs(start, observer);
  run_ranks(2, [&](Communicator& world) {
    CallCount count;
    std::vector<int> unnamed;
    count.called = [&] {
      if (comm::CallName::current().text().empty()) unnamed.push_back(count.calls);
    };
    FailingCommunicator counting(world, count);
    Trainer trainer(start.spec, inputs.corpus, counting);
    RankLoop(inputs.shared, trainer, counting).run();
    EXPECT_EQ(unnamed, std::vector<int>());
    EXPECT_GT(count.calls, 100);
  });
  EXPECT_EQ(observer.num_predictions, 1);
}

class Prospects : public ScratchFolder {};

TEST_F(Prospects, WhereTheyCannotBeMeasuredTheRunGoesOn) {
  RunStart start;
  start.spec = tiny_spec(2, 96);
  start.spec.model.layers = 2;
  start.spec.model.width = 128;  // worth measuring
  start.spec.train.eval_sequences = 2;
  start.spec.train.out = folder_;
  Unforeseen observer;
  const LoopInputs inputs(start, observer);
  run_ranks(1, [&](Communicator& world) {
    FailingCommunicator failing(world, observer.count);
    Trainer trainer(start.spec, inputs.corpus, failing);
    RankLoop(inputs.shared, trainer, failing).run();
  });
  EXPECT_EQ(observer.num_steps, start.spec.train.steps);
  EXPECT_EQ(observer.choices, std::vector<std::string>{"no prediction: there is no memory for it"});
}

}  // namespace
}  // namespace braid::train::rank_loop_test
