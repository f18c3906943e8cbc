// A step begun and taken back leaves nothing behind; one that goes on is the whole step. Runs under ThreadSanitizer
// too.
#include "braid/schedule/run_ahead.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/pipe/schedule_runtime.h"
#include "braid/schedule/passes.h"
#include "tests/support/fake_stages.h"
#include "tests/support/schedule_requests.h"

namespace braid::run_ahead_test {
namespace {

// Of an attempt that is abandoned all values are others: a message that stays behind is noticed.
constexpr float kOfTheAbandoned = 1000;

std::vector<NamedRequest> several_ranks() {
  return valid_requests({{2, 4}, {2, 8}, {3, 6}, {4, 8}, {4, 12}, {2, 6, 3}, {4, 8, 3}});
}

void expect_values(const FakeStages& fake, const Schedule& schedule) {
  for (const auto& [place, value] : fake.first_gradient) {
    EXPECT_EQ(value, FakeStages::expected_gradient(schedule.num_stages, place.first, place.second));
  }
}

void expect_whole(const std::vector<Span>& spans, const Program& program) {
  ASSERT_EQ(spans.size(), program.size());
  for (size_t i = 0; i < spans.size(); ++i) EXPECT_EQ(spans[i].action, program[i]);
}

void abandon_and_run(const Schedule& schedule) {
  const RunAhead ahead = run_ahead(schedule);
  run_ranks(schedule.num_ranks(), [&](Communicator& pipe) {
    FakeStages fake(schedule.num_stages, 17);
    ScheduleRuntime runtime(schedule, pipe, fake);
    for (int step = 0; step < 3; ++step) {
      for (int attempt = 0; attempt < step; ++attempt) {
        fake.offset = kOfTheAbandoned;
        runtime.run_ahead(ahead);
        runtime.abandon(ahead);
        EXPECT_TRUE(fake.first_gradient.empty());
      }
      fake.offset = 0;
      expect_whole(runtime.run_step(), schedule.programs[pipe.rank()]);
      expect_values(fake, schedule);
      fake.first_gradient.clear();
    }
  });
}

TEST(RuntimeAhead, WhatIsAbandonedLeavesNothingBehind) {
  for (const NamedRequest& named : several_ranks()) {
    SCOPED_TRACE(named.text());
    abandon_and_run(with_comms(with_grad_sync(named.schedule())));
  }
}

TEST(RuntimeAhead, AStepThatGoesOnIsTheWholeStep) {
  for (const NamedRequest& named : several_ranks()) {
    SCOPED_TRACE(named.text());
    const Schedule schedule = with_comms(with_grad_sync(named.schedule()));
    const RunAhead ahead = run_ahead(schedule);
    run_ranks(schedule.num_ranks(), [&](Communicator& pipe) {
      FakeStages fake(schedule.num_stages, 17);
      ScheduleRuntime runtime(schedule, pipe, fake);
      for (int step = 0; step < 2; ++step) {
        runtime.run_ahead(ahead);
        expect_whole(runtime.run_step(), schedule.programs[pipe.rank()]);
      }
      expect_values(fake, schedule);
    });
  }
}

TEST(RuntimeAhead, OnlyWhatWasBegunIsAbandoned) {
  const Schedule schedule = with_comms(make_schedule("gpipe", {1, 2}));
  run_ranks(1, [&](Communicator& pipe) {
    FakeStages fake(1, 1);
    ScheduleRuntime runtime(schedule, pipe, fake);
    EXPECT_THROW(runtime.abandon(run_ahead(schedule)), InternalError);
  });
}

}  // namespace
}  // namespace braid::run_ahead_test
