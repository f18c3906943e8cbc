// The runtime's actions and their order, against the simulator's timeline of the same schedule.
#include <gtest/gtest.h>

#include "braid/comm/local/run_ranks.h"
#include "braid/pipe/schedule_runtime.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/simulate.h"
#include "tests/pipe/null_stages.h"
#include "tests/support/schedule_requests.h"

namespace braid::pipe::order_agreement_test {
namespace {

std::vector<Action> actions_of(const std::vector<schedule::Span>& spans) {
  std::vector<Action> actions;
  for (const schedule::Span& span : spans) actions.push_back(span.action);
  return actions;
}

// Those that a stage is asked for.
std::vector<Action> run_by_stages(const std::vector<Action>& actions) {
  std::vector<Action> kept;
  for (Action action : actions) {
    action.fusion = Fusion::None;
    if (!communicates(action.op)) kept.push_back(action);
  }
  return kept;
}

void expect_the_simulators_order(const Schedule& schedule) {
  const schedule::Timeline simulated = schedule::simulate(schedule, schedule::CostModel{});
  run_ranks(schedule.num_ranks(), [&](Communicator& pipe) {
    NullStages stages(schedule, pipe.rank());
    const auto spans = ScheduleRuntime(schedule, pipe, stages).run_step();
    stages.finish();
    const std::vector<Action> expected = actions_of(simulated.ranks[pipe.rank()]);
    EXPECT_EQ(schedule::text(actions_of(spans)), schedule::text(expected));
    EXPECT_EQ(schedule::text(stages.ran), schedule::text(run_by_stages(expected)));
  });
}

TEST(OrderAgreement, EveryScheduleRunsInTheSimulatorsOrder) {
  std::vector<ScheduleRequest> requests;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (const int microbatches : {1, 2, 4, 8, 10}) requests.push_back({.ranks = ranks, .microbatches = microbatches});
  }
  for (const auto& named : valid_requests(requests)) {
    SCOPED_TRACE(named.text());
    expect_the_simulators_order(schedule::with_comms(schedule::with_grad_sync(named.schedule())));
  }
}

}  // namespace
}  // namespace braid::pipe::order_agreement_test
