// The runtime against fake stages: values, order, failure. Runs under ThreadSanitizer too.
#include "braid/pipe/schedule_runtime.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/program_text.h"
#include "tests/pipe/bidirectional.h"
#include "tests/support/fake_stages.h"
#include "tests/support/split_backward.h"

namespace braid::pipe::schedule_runtime_test {
namespace {

enum class Backward { Full, Split };

Schedule complete(const std::string& name, int ranks, int microbatches, Backward backward) {
  const Schedule compute = make_schedule(name, {ranks, microbatches});
  return schedule::with_comms(
      schedule::with_grad_sync(backward == Backward::Split ? split_backward(compute) : compute));
}

Program compute_only(const Program& program) {
  Program kept;
  for (const auto& action : program) {
    if (schedule::computes(action.op) || action.op == Op::ReduceGrad) kept.push_back(action);
  }
  return kept;
}

size_t pairs_on(const Schedule& schedule, int rank) {
  size_t pairs = 0;
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    for (int micro = 0; micro < schedule.num_microbatches; ++micro) pairs += schedule.rank_of(stage, micro) == rank;
  }
  return pairs;
}

Program without_fusion(Program program) {
  for (Action& action : program) action.fusion = Fusion::None;
  return program;
}

void expect_values_and_order(const Schedule& schedule, int64_t elements) {
  const int stages = schedule.num_stages;
  run_ranks(schedule.num_ranks(), [&](Communicator& pipe) {
    FakeStages fake(stages, elements);
    ScheduleRuntime runtime(schedule, pipe, fake);
    for (int step = 0; step < 2; ++step) {
      fake.ran.clear();
      const auto spans = runtime.run_step();
      const Program& program = schedule.programs[pipe.rank()];
      ASSERT_EQ(spans.size(), program.size());
      for (size_t i = 0; i < spans.size(); ++i) EXPECT_EQ(spans[i].action, program[i]);
      EXPECT_EQ(schedule::text(fake.ran), schedule::text(compute_only(without_fusion(program))));
      for (const auto& [place, value] : fake.first_gradient) {
        EXPECT_EQ(value, FakeStages::expected_gradient(stages, place.first, place.second));
      }
      EXPECT_EQ(fake.first_gradient.size(), pairs_on(schedule, pipe.rank()));
    }
  });
}

TEST(ScheduleRuntime, EveryScheduleComputesWhatOneRankWould) {
  for (const auto& name : schedule_names()) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
      for (const int microbatches : {1, 2, 5, 8}) {
        if (!schedule_problems(name, {ranks, microbatches}).empty()) continue;
        for (const Backward backward : {Backward::Full, Backward::Split}) {
          SCOPED_TRACE(cat(name, " ", ranks, " ranks ", microbatches, " microbatches"));
          expect_values_and_order(complete(name, ranks, microbatches, backward), 17);
        }
      }
    }
  }
}

TEST(ScheduleRuntime, LargeActivationsTravelWhole) {
  expect_values_and_order(complete("1f1b", 3, 4, Backward::Full), 200000);
}

TEST(ScheduleRuntime, MirroredStagesAndFusedPairsComputeWhatOneRankWould) {
  for (const Op backward : {Op::FullBackward, Op::InputGrad}) expect_values_and_order(bidirectional(backward), 33);
}

TEST(ScheduleRuntime, TheSpansOfAFusedPairAreTheSameTime) {
  const Schedule schedule = bidirectional(Op::FullBackward);
  run_ranks(2, [&](Communicator& pipe) {
    FakeStages fake(2, 64);
    const auto spans = ScheduleRuntime(schedule, pipe, fake).run_step();
    int pairs = 0;
    for (size_t i = 0; i + 1 < spans.size(); ++i) {
      EXPECT_LE(spans[i].begin, spans[i].end);
      if (spans[i].action.fusion == Fusion::None) continue;
      EXPECT_EQ(spans[i].begin, spans[i + 1].begin);
      EXPECT_EQ(spans[i].end, spans[i + 1].end);
      ++pairs;
    }
    EXPECT_EQ(pairs, 2);
  });
}

// Records the fused pairs that an executor gets.
class Overlapping final : public FakeStages {
 public:
  using FakeStages::FakeStages;
  std::vector<std::pair<Action, Action>> pairs;
  void overlapped(const Action& forward, const Action& backward) override {
    pairs.emplace_back(forward, backward);
    FakeStages::overlapped(forward, backward);
  }
};

TEST(ScheduleRuntime, AnExecutorGetsAFusedPairAsOne) {
  const Schedule schedule = bidirectional(Op::InputGrad);
  run_ranks(2, [&](Communicator& pipe) {
    Overlapping fake(2, 8);
    ScheduleRuntime(schedule, pipe, fake).run_step();
    const int mine = 2 * pipe.rank(), other = 2 - mine;
    ASSERT_EQ(fake.pairs.size(), 2);
    EXPECT_EQ(fake.pairs[0].first, (Action{Op::Forward, 0, mine + 1, Fusion::WithNext}));
    EXPECT_EQ(fake.pairs[0].second, (Action{Op::InputGrad, 1, other}));
    EXPECT_EQ(fake.pairs[1].second, (Action{Op::InputGrad, 0, mine}));
  });
}

TEST(ScheduleRuntime, SpansDoNotOverlapAndAreInOrder) {
  const Schedule schedule = complete("1f1b", 2, 4, Backward::Full);
  run_ranks(2, [&](Communicator& pipe) {
    FakeStages fake(2, 64);
    const auto spans = ScheduleRuntime(schedule, pipe, fake).run_step();
    for (size_t i = 0; i < spans.size(); ++i) {
      EXPECT_LE(spans[i].begin, spans[i].end);
      EXPECT_LE(spans[i > 0 ? i - 1 : 0].begin, spans[i].begin);
    }
  });
}

// Rank 0 takes its time in its first backward, long before it asks for the last gradient.
class SlowStages final : public FakeStages {
 public:
  SlowStages(std::atomic<bool>& asked, int last) : FakeStages(2, 4), asked_(asked), last_(last) {}
  void full_backward(int stage, int micro) override {
    if (stage == 0 && micro == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    FakeStages::full_backward(stage, micro);
  }
  Tensors output_gradient_buffers(int stage, int micro) override {
    if (micro == last_) asked_ = true;
    return FakeStages::output_gradient_buffers(stage, micro);
  }

 private:
  std::atomic<bool>& asked_;
  int last_;
};

TEST(ScheduleRuntime, AStepEndsWhenItsSendsHaveBeenTaken) {
  const int microbatches = 8;
  const Schedule schedule = complete("gpipe", 2, microbatches, Backward::Full);
  std::atomic<bool> asked = false;
  run_ranks(2, [&](Communicator& pipe) {
    SlowStages stages(asked, microbatches - 1);
    ScheduleRuntime(schedule, pipe, stages).run_step();
    EXPECT_TRUE(asked);
  });
}

class FailingStage final : public StageExecutor {
 public:
  explicit FailingStage(FakeStages& inner) : inner_(inner) {}
  void forward(int stage, int micro) override {
    if (stage == 1 && micro == 2) throw std::runtime_error("stage 1 is out of luck");
    inner_.forward(stage, micro);
  }
  void full_backward(int stage, int micro) override { inner_.full_backward(stage, micro); }
  void input_grad(int stage, int micro) override { inner_.input_grad(stage, micro); }
  void weight_grad(int stage, int micro) override { inner_.weight_grad(stage, micro); }
  void reduce_grad(int stage) override { inner_.reduce_grad(stage); }
  Tensors outputs(int stage, int micro) override { return inner_.outputs(stage, micro); }
  Tensors input_gradients(int stage, int micro) override { return inner_.input_gradients(stage, micro); }
  Tensors input_buffers(int stage, int micro) override { return inner_.input_buffers(stage, micro); }
  Tensors output_gradient_buffers(int stage, int micro) override {
    return inner_.output_gradient_buffers(stage, micro);
  }
  void give_inputs(int stage, int micro, Tensors tensors) override { inner_.give_inputs(stage, micro, tensors); }
  void give_output_gradients(int stage, int micro, Tensors tensors) override {
    inner_.give_output_gradients(stage, micro, tensors);
  }

 private:
  FakeStages& inner_;
};

TEST(ScheduleRuntime, AFailingStageStopsAllOthersWithItsReason) {
  const Schedule schedule = complete("1f1b", 3, 8, Backward::Full);
  std::vector<std::string> heard(3);
  try {
    run_ranks(3, [&](Communicator& pipe) {
      FakeStages fake(3, 16);
      FailingStage failing(fake);
      try {
        ScheduleRuntime(schedule, pipe, failing).run_step();
      } catch (const std::exception& error) {
        heard[pipe.rank()] = error.what();
        throw;
      }
    });
    FAIL() << "the failure must come out of run_ranks";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "stage 1 is out of luck");
  }
  for (const auto& words : heard) EXPECT_NE(words.find("stage 1 is out of luck"), std::string::npos) << words;
}

TEST(ScheduleRuntime, AScheduleForAnotherNumberOfRanksIsRefused) {
  const Schedule schedule = complete("gpipe", 3, 2, Backward::Full);
  EXPECT_THROW(run_ranks(2,
                         [&](Communicator& pipe) {
                           FakeStages fake(3, 1);
                           ScheduleRuntime(schedule, pipe, fake);
                         }),
               InternalError);
}

}  // namespace
}  // namespace braid::pipe::schedule_runtime_test
