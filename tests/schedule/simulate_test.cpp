// The simulator against published makespans and against itself.
#include "braid/schedule/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/grid.h"
#include "braid/schedule/measured_cost.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/timeline.h"
#include "braid/schedule/validate.h"
#include "tests/support/dice.h"
#include "tests/support/sampled.h"
#include "tests/support/schedule_requests.h"
#include "tests/support/split_backward.h"

namespace braid::schedule::simulate_test {
namespace {

TEST(Simulate, FullBackwardTakesTwoUnits) {
  EXPECT_EQ(grid(simulate(one_f_one_b(2, 3), {})),
            "rank 0  F0 F1 .  .  B0--- F2 B1--- .  B2---\n"
            "rank 1  .  F0 B0--- F1 B1--- F2 B2---\n");
}

TEST(Simulate, TransfersDelayTheOtherRankOnly) {
  const Timeline timeline = simulate(with_comms(gpipe(2, 2)), {.transfer = 0.5});
  const auto& first = timeline.ranks[0];  // 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
  EXPECT_EQ(first[1].begin, 1);
  EXPECT_EQ(first[1].end, 1.5);
  EXPECT_EQ(first[2].begin, 1);
  const auto& second = timeline.ranks[1];  // 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1
  EXPECT_EQ(second[0].begin, 0);
  EXPECT_EQ(second[0].end, 1.5);
  EXPECT_EQ(second[1].end, 2.5);
  EXPECT_EQ(second[2].end, 2.5);  // already there
  EXPECT_EQ(first[4].begin, 2);   // the wait for the gradient is a span of the receive
  EXPECT_EQ(first[4].end, 6);
}

TEST(Simulate, RendezvousHoldsBothRanks) {
  const Timeline timeline = simulate(gpipe(2, 2), {.transfer = 0.5}, SendMode::Rendezvous);
  const auto& first = timeline.ranks[0];
  EXPECT_EQ(first[1].action, (Action{Op::SendForward, 0, 0}));
  EXPECT_EQ(first[1].end, 1.5);
  EXPECT_EQ(first[2].begin, 1.5);  // 0F1
  EXPECT_EQ(first[3].begin, 2.5);  // 0SEND_F1 meets 1RECV_F1, reached when 1F0 ends
  EXPECT_EQ(first[3].end, 3.0);
  EXPECT_EQ(timeline.ranks[1][2].end, 3.0);
}

// A step on stages of different lengths, whose transfers take time.
Timeline on_uneven_stages(const Schedule& schedule) {
  Dice dice(7);
  CostModel cost{.transfer = 0.5};
  cost.stages.resize(static_cast<size_t>(schedule.num_stages));
  const auto time = [&] { return 1.0 * dice.between(1, 4); };
  for (StageTimes& stage : cost.stages) stage = {.forward = time(), .input_grad = time(), .weight_grad = time()};
  return simulate(schedule, cost);
}

TEST(Replay, IsNeverSlowerThanWhatWasMeasured) {
  for (const auto& named : valid_requests({{4, 8}})) {
    const Schedule schedule = with_comms(named.schedule());
    const Timeline measured = on_uneven_stages(schedule), ideal = replay(schedule, measured);
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
      EXPECT_EQ(ideal.busy(rank), measured.busy(rank)) << named.name;
      for (size_t i = 0; i < measured.ranks[rank].size(); ++i) {
        EXPECT_EQ(ideal.ranks[rank][i].action, measured.ranks[rank][i].action) << named.name;
        EXPECT_LE(ideal.ranks[rank][i].end, measured.ranks[rank][i].end) << named.name;
      }
    }
    EXPECT_LT(ideal.makespan(), measured.makespan()) << named.name << ": transfers take no time";
    EXPECT_LT(ideal.bubble_fraction(), measured.bubble_fraction()) << named.name;
  }
}

// Two of three forwards were held up: a model of typical times would have the third as long.
TEST(Replay, EveryActionTakesWhatItTookItself) {
  const Schedule schedule = with_comms(gpipe(1, 3));
  Timeline measured{{{{{Op::Forward, 0, 0}, 10, 19},
                      {{Op::Forward, 0, 1}, 19, 20},
                      {{Op::Forward, 0, 2}, 21, 30},
                      {{Op::FullBackward, 0, 0}, 30, 31},
                      {{Op::FullBackward, 0, 1}, 31, 32},
                      {{Op::FullBackward, 0, 2}, 32, 33}}}};
  EXPECT_EQ(replay(schedule, measured).makespan(), 22);
  MeasuredCost typical;
  typical.add(measured);
  EXPECT_GT(simulate(schedule, typical.cost(1)).makespan(), measured.makespan());
  measured.ranks[0].pop_back();
  EXPECT_THROW(replay(schedule, measured), InternalError);
}

TEST(Simulate, AgreesWithTheUnitClock) {
  for (const auto& named : valid_requests({{4, 7}, {4, 8}})) {
    const bool split = find_schedule(named.name)->splits_backward;
    const Schedule schedule = split ? split_backward(named.schedule()) : named.schedule();
    const Timeline unit = unit_time(schedule);
    const CostModel cost = split ? CostModel{.overlapped = 1} : CostModel{.input_grad = 0.75, .weight_grad = 0.25};
    const Timeline simulated = simulate(schedule, cost);
    for (int rank = 0; rank < 4; ++rank) {
      for (size_t i = 0; i < unit.ranks[rank].size(); ++i) {
        EXPECT_EQ(unit.ranks[rank][i].begin, simulated.ranks[rank][i].begin);
        EXPECT_EQ(unit.ranks[rank][i].end, simulated.ranks[rank][i].end);
      }
    }
  }
}

TEST(Simulate, DeadlockIsAnErrorThatNamesEveryRank) {
  EXPECT_NO_THROW(simulate(one_f_one_b(3, 4), {}));
  try {
    simulate(one_f_one_b(3, 4), {}, SendMode::Rendezvous);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems().size(), 3u);
    EXPECT_EQ(error.problems()[0].key, "rank 0");
  }
  // Whatever the validator refuses the simulator refuses, and nothing else.
  for (const auto& named : valid_requests(4, 8)) {
    const Schedule schedule = with_comms(named.schedule());
    const bool valid = validate(schedule, SendMode::Rendezvous).empty();
    bool plays = true;
    try {
      simulate(schedule, {}, SendMode::Rendezvous);
    } catch (const ConfigError&) {
      plays = false;
    }
    EXPECT_EQ(plays, valid) << named.text();
  }
}

TEST(Simulate, TransferActionsAndTransferCostAreTheSame) {
  for (const auto& named : valid_requests({{5, 9}, {5, 10}, {4, 8}})) {
    const Schedule schedule = split_backward(named.schedule());
    const CostModel cost{1.25, 1.5, 0.75, 0.375};
    const Timeline implied = simulate(schedule, cost);
    const Timeline spelled = simulate(with_comms(schedule), cost);
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
      std::vector<Span> compute;
      std::copy_if(spelled.ranks[rank].begin(), spelled.ranks[rank].end(), std::back_inserter(compute),
                   [](const Span& span) { return computes(span.action.op); });
      ASSERT_EQ(compute.size(), implied.ranks[rank].size());
      for (size_t i = 0; i < compute.size(); ++i) {
        EXPECT_EQ(compute[i].action, implied.ranks[rank][i].action);
        EXPECT_EQ(compute[i].begin, implied.ranks[rank][i].begin);
        EXPECT_EQ(compute[i].end, implied.ranks[rank][i].end);
      }
    }
  }
}

TEST(Simulate, LargeSchedules) {
  const bool full = full_run();
  const int p = full ? 1024 : 256;
  const int m = full ? 4096 : 512;
  const Timeline timeline = simulate(one_f_one_b(p, m), {});
  EXPECT_EQ(timeline.makespan(), 3.0 * (m + p - 1));
}

}  // namespace
}  // namespace braid::schedule::simulate_test
