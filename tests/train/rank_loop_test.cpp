// The loop of a run around what it finds between steps.
#include "braid/train/rank_loop.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::rank_loop_test {
namespace {

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
  const Corpus corpus = tiny_corpus();
  EvaluatedText evaluated(start.spec, corpus.validation, std::vector<int>(19, 1));
  Damage observer;
  CheckpointReading none("");
  const std::vector<std::string> choices;
  const RunControls controls{[] { return false; }};
  const SharedByRanks shared{start, corpus, choices, evaluated, observer, none, controls};
  const auto run = [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    Trainer trainer(start.spec, corpus, world);
    if (world.rank() == 0) observer.trainer = &trainer;
    RankLoop(shared, trainer, world).run();
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

}  // namespace
}  // namespace braid::rank_loop_test
