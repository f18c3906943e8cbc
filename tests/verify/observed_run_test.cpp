// An observer sees the values of a run and changes nothing by itself.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <map>

#include "braid/comm/local/run_ranks.h"
#include "braid/train/trainer.h"
#include "tests/verify/small_run.h"

namespace braid::verify::observed_run_test {
namespace {

struct Counter final : nn::ValueObserver {
  void made(const nn::MadeValue& place, const nn::Microbatch&, at::Tensor&) override {
    ++calls[{place.block, static_cast<int>(place.kind)}];
  }
  std::map<std::pair<int, int>, int> calls;
};

// Returns loss and gradient norm of the second step.
std::pair<double, double> trained(nn::ValueObserver* observer) {
  RunSpec run = small_run();
  run.model.dropout = 0.2;
  const data::Corpus corpus = synthetic_corpus(run, 2);
  nn::ModelMaker maker = nn::model_maker(run.model);
  maker.observer = observer;
  train::StepReport report;
  run_ranks(1, [&](Communicator& world) {
    at::set_num_threads(1);
    train::Trainer trainer(run, corpus, train::RunWorld(world), maker);
    trainer.step();
    report = trainer.step();
  });
  return {report.loss, report.grad_norm};
}

TEST(ObservedRun, HasTheBitsOfARunWithoutAnObserver) {
  Counter counter;
  EXPECT_EQ(trained(&counter), trained(nullptr));
  const int microbatches = 2 * 8;
  const auto calls = [&](int block, nn::ValueKind kind) { return counter.calls[{block, static_cast<int>(kind)}]; };
  EXPECT_EQ(calls(0, nn::ValueKind::Input), 0) << "the embedding has tokens";
  EXPECT_EQ(calls(1, nn::ValueKind::Input), microbatches);
  EXPECT_GE(calls(1, nn::ValueKind::Output), 8 * microbatches);
  EXPECT_EQ(calls(3, nn::ValueKind::Logits), microbatches);
}

}  // namespace
}  // namespace braid::verify::observed_run_test
