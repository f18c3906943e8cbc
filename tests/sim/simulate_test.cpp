// The simulator against published makespans, against a naive one on random schedules and costs, and against itself.
#include "braid/sim/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/grid.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/unit_time.h"
#include "braid/schedule/validate.h"
#include "tests/support/schedule_requests.h"

namespace braid {
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

TEST(Simulate, AgreesWithTheUnitClock) {
  for (const auto& named : valid_requests({{4, 7}, {4, 8}})) {
    const Schedule schedule = named.schedule();
    const Timeline unit = unit_time(schedule);
    const bool split = find_schedule(named.name)->splits_backward;
    const Timeline simulated = simulate(schedule, split ? CostModel{1, 1, 1} : CostModel{1, 0.75, 0.25});
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

// The definition, read out loud: every action ends at max(end of the one before, ends of all it needs + latency) +
// cost. Sweeps over all actions until nothing changes.
class NaiveSimulator {
 public:
  NaiveSimulator(const Schedule& schedule, const CostModel& cost) : schedule_(schedule), cost_(cost) {}

  std::map<Action, double> ends() {
    for (bool changed = true; changed;) {
      changed = false;
      for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
        double free = 0;
        for (const auto& action : schedule_.programs[rank]) {
          double begin = free;
          for (const auto& need : needs(action)) {
            const bool elsewhere = schedule_.stage_rank[need.stage] != rank;
            begin = std::max(begin, ends_[need] + (elsewhere ? cost_.transfer : 0));
          }
          free = begin + cost_.compute(action);
          changed |= ends_[action] != free;
          ends_[action] = free;
        }
      }
    }
    return ends_;
  }

 private:
  std::vector<Action> needs(const Action& action) const {
    std::vector<Action> all;
    if (action.op == Op::Forward && action.stage > 0) all.push_back({Op::Forward, action.stage - 1, action.micro});
    if (action.op == Op::InputGrad) {
      all.push_back({Op::Forward, action.stage, action.micro});
      if (action.stage + 1 < schedule_.num_stages) all.push_back({Op::InputGrad, action.stage + 1, action.micro});
    }
    if (action.op == Op::WeightGrad) all.push_back({Op::InputGrad, action.stage, action.micro});
    return all;
  }

  const Schedule& schedule_;
  const CostModel cost_;
  std::map<Action, double> ends_;
};

// A random order that can run: F, I and W of random stages, drawn from those whose needs are met.
Schedule random_schedule(int ranks, int chunks, int microbatches, std::mt19937& random) {
  const int stages = ranks * chunks;
  Schedule schedule{"random", stages, microbatches, {}, std::vector<Program>(ranks)};
  for (int stage = 0; stage < stages; ++stage) schedule.stage_rank.push_back(stage % ranks);
  std::shuffle(schedule.stage_rank.begin(), schedule.stage_rank.end(), random);
  std::vector<Action> open;
  for (int micro = 0; micro < microbatches; ++micro) open.push_back({Op::Forward, 0, micro});
  while (!open.empty()) {
    const size_t pick = random() % open.size();
    const Action action = open[pick];
    open.erase(open.begin() + pick);
    schedule.programs[schedule.stage_rank[action.stage]].push_back(action);
    const bool last = action.stage + 1 == stages;
    if (action.op == Op::Forward)
      open.push_back({last ? Op::InputGrad : Op::Forward, action.stage + !last, action.micro});
    if (action.op != Op::InputGrad) continue;
    open.push_back({Op::WeightGrad, action.stage, action.micro});
    if (action.stage > 0) open.push_back({Op::InputGrad, action.stage - 1, action.micro});
  }
  return schedule;
}

TEST(Simulate, AgreesWithANaiveSimulatorOnRandomSchedules) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time(0.1, 3.0);
  for (int round = 0; round < 60; ++round) {
    const Schedule schedule = random_schedule(1 + random() % 5, 1 + random() % 3, 1 + random() % 6, random);
    ASSERT_EQ(print(schedule, validate(with_comms(schedule), SendMode::Buffered)), "");
    const CostModel cost{time(random), time(random), time(random), time(random)};
    std::map<Action, double> ends = NaiveSimulator(schedule, cost).ends();
    for (const auto& timeline : {simulate(schedule, cost), simulate(with_comms(schedule), cost)}) {
      for (const auto& spans : timeline.ranks) {
        for (const auto& span : spans) {
          if (!computes(span.action.op)) continue;
          EXPECT_EQ(span.end, ends.at(span.action)) << text(span.action);
        }
      }
    }
  }
}

// Any two actions of a rank swapped: either both accept the schedule or both refuse it.
TEST(Simulate, PlaysExactlyWhatTheValidatorAccepts) {
  std::mt19937 random(11);
  int accepted = 0;
  for (int round = 0; round < 2000; ++round) {
    Schedule schedule = random_schedule(1 + random() % 4, 1 + random() % 2, 1 + random() % 4, random);
    if (random() % 2 == 0) schedule = with_comms(schedule);
    Program& program = schedule.programs[random() % schedule.programs.size()];
    std::swap(program[random() % program.size()], program[random() % program.size()]);
    const SendMode mode = random() % 4 == 0 && has_comms(schedule) ? SendMode::Rendezvous : SendMode::Buffered;
    const std::vector<Fault> faults = validate(schedule, mode);
    bool plays = true;
    try {
      simulate(schedule, {}, mode);
    } catch (const ConfigError&) {
      plays = false;
    }
    EXPECT_EQ(plays, faults.empty()) << print(schedule, faults);
    accepted += plays;
  }
  EXPECT_GT(accepted, 200);
  EXPECT_LT(accepted, 1800);
}

TEST(Simulate, LargeSchedules) {
  const bool full = std::getenv("BRAID_FULL") != nullptr;
  const int p = full ? 1024 : 256;
  const int m = full ? 4096 : 512;
  const Timeline timeline = simulate(one_f_one_b(p, m), {});
  EXPECT_EQ(timeline.makespan(), 3.0 * (m + p - 1));
}

}  // namespace
}  // namespace braid
