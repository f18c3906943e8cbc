// The validator and the runtime say the same of every schedule, sound or not: on null stages, the runtime comes to the
// end without a complaint exactly where validate() finds no fault. Whatever is wrong, it ends: no hang, no crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/pipe/schedule_runtime.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/peaks.h"
#include "braid/schedule/validate.h"
#include "tests/pipe/bidirectional.h"
#include "tests/pipe/null_stages.h"
#include "tests/pipe/schedule_mutation.h"
#include "tests/support/sampled.h"
#include "tests/support/schedule_requests.h"
#include "tests/support/split_backward.h"

namespace braid::pipe::mutated_schedules_test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kMutants = 1;
#else
constexpr int kMutants = 4;  // of each schedule
#endif

int mutants_of_each() { return full_run() ? 50 * kMutants : kMutants; }

// Empty when every rank came to its end; else why not.
std::string outcome(const Schedule& schedule) {
  try {
    run_ranks(schedule.num_ranks(),
              [&](Communicator& pipe) {
                NullStages stages(schedule, pipe.rank());
                ScheduleRuntime(schedule, pipe, stages).run_step();
                stages.finish();
              },
              {.deadline_seconds = 600});
  } catch (const Complaint& error) {
    return error.what();
  } catch (const InternalError& error) {
    return error.what();
  } catch (const CommError& error) {
    const std::string& why = error.failure().why;
    EXPECT_TRUE(why.starts_with("no rank can continue") || why.starts_with("has ended without joining")) << why;
    return why;
  }
  return "";
}

// The schedule with every op that a pass may add: weights gathered for the step, recomputation, the optimizer.
Schedule with_every_op(const Schedule& schedule) {
  Schedule result = schedule;
  for (Program& program : result.programs) {
    const Program before = std::exchange(program, {});
    std::map<int, int> last;  // microbatch, by stage
    for (const Action& action : before) {
      int& micro = last.emplace(action.stage, 0).first->second;
      micro = std::max(micro, action.micro);
    }
    for (const auto& [stage, micro] : last) program.push_back({Op::Unshard, stage, -1});
    for (size_t i = 0; i < before.size(); ++i) {
      const Action& action = before[i];
      const bool backward = action.op == Op::FullBackward || action.op == Op::InputGrad;
      const bool alone = i == 0 || before[i - 1].fusion == Fusion::None;
      if (backward && alone) program.push_back({Op::Recompute, action.stage, action.micro});
      program.push_back(action);
    }
    for (const auto& [stage, micro] : last) {
      const Action update{Op::Update, stage, micro};
      program.push_back({Op::Reshard, stage, -1});
      if (std::find(program.begin(), program.end(), update) == program.end()) program.push_back(update);
    }
  }
  return result;
}

Schedule with_promise(Schedule schedule) {
  schedule.promise = {schedule::peak_activations(schedule), schedule::peak_pending_weight_grads(schedule),
                      schedule::weight_versions(schedule)};
  return schedule;
}

struct Named {
  std::string text;
  Schedule schedule;
};

// Every schedule of small size in three forms: as it is, its backwards split, with every op. The promise of the last
// two is what they hold and no more.
std::vector<Named> schedules() {
  std::vector<Named> all;
  for (const auto& named : valid_requests({{2, 2}, {2, 4}, {3, 4}, {4, 8}})) {
    const Schedule plain = named.schedule();
    const auto lowered = [](const Schedule& compute) {
      return schedule::with_comms(schedule::with_grad_sync(compute));
    };
    all.push_back({named.text(), lowered(plain)});
    all.push_back({named.text() + ", split", with_promise(lowered(split_backward(plain)))});
    all.push_back({named.text() + ", with every op", with_promise(with_every_op(lowered(plain)))});
  }
  for (const Op backward : {Op::FullBackward, Op::InputGrad}) {
    all.push_back({"bidirectional", with_promise(with_every_op(schedule::with_grad_sync(bidirectional(backward))))});
  }
  return all;
}

struct Tally {
  int sound = 0, faulty = 0;
};

void compare(const Schedule& schedule, Tally& tally) {
  const auto faults = schedule::validate(schedule, schedule::SendMode::Buffered);
  const std::string why = outcome(schedule);
  EXPECT_EQ(faults.empty(), why.empty()) << "runtime: " << why << "\n"
                                         << "validator:\n"
                                         << schedule::print(schedule, faults);
  ++(faults.empty() ? tally.sound : tally.faulty);
}

TEST(MutatedSchedules, UnchangedOnesRunToTheEnd) {
  Tally tally;
  for (const auto& [text, schedule] : schedules()) {
    SCOPED_TRACE(text);
    compare(schedule, tally);
  }
  EXPECT_EQ(tally.faulty, 0);
}

TEST(MutatedSchedules, TheValidatorSaysWhatTheRuntimeDoes) {
  Tally tally;
  uint64_t seed = 0;
  for (const auto& [text, schedule] : schedules()) {
    for (int i = 0; i < mutants_of_each() && !HasFailure(); ++i) {
      Mutation mutation(seed++);
      const Schedule mutant = mutation.apply(schedule);
      SCOPED_TRACE(cat(text, ", seed ", seed - 1, ": ", mutation.text()));
      compare(mutant, tally);
    }
  }
  const int all = tally.sound + tally.faulty;
  std::printf("%d mutants, %d sound\n", all, tally.sound);
  EXPECT_GT(tally.sound, all / 20);
  EXPECT_GT(tally.faulty, all / 3);
}

}  // namespace
}  // namespace braid::pipe::mutated_schedules_test
