// Properties over random schedules: chunks, fused pairs, both directions, times of each stage, transfers spelled out or
// not. The simulator agrees with a naive one, plays exactly what the validator accepts, and does not care how ranks are
// numbered.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "braid/base/errors.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/simulate.h"
#include "braid/schedule/timeline.h"
#include "braid/schedule/validate.h"

namespace braid::schedule::random_schedules_test {
namespace {

using Random = std::mt19937;

// An order that can run: F, I and W of random stages, drawn from those whose needs are met.
Schedule random_schedule(Random& random) {
  const int ranks = 1 + random() % 5;
  const int stages = ranks * (1 + random() % 3);
  const int microbatches = 1 + random() % 6;
  Schedule schedule{"random", stages, microbatches, {}, std::vector<Program>(ranks)};
  for (int stage = 0; stage < stages; ++stage) schedule.stage_rank.push_back(stage % ranks);
  std::shuffle(schedule.stage_rank.begin(), schedule.stage_rank.end(), random);
  if (random() % 3 == 0 && microbatches > 1) {
    schedule.mirror_rank.assign(schedule.stage_rank.rbegin(), schedule.stage_rank.rend());
    schedule.mirror_from = 1 + random() % (microbatches - 1);
    if (schedule.mirror_rank == schedule.stage_rank) schedule.mirror_rank = {}, schedule.mirror_from = 0;
  }
  std::vector<Action> open;
  for (int micro = 0; micro < microbatches; ++micro) open.push_back({Op::Forward, 0, micro});
  while (!open.empty()) {
    const size_t pick = random() % open.size();
    const Action action = open[pick];
    open.erase(open.begin() + pick);
    schedule.programs[schedule.rank_of(action.stage, action.micro)].push_back(action);
    const bool last = action.stage + 1 == stages;
    if (action.op == Op::Forward)
      open.push_back({last ? Op::InputGrad : Op::Forward, action.stage + !last, action.micro});
    if (action.op != Op::InputGrad) continue;
    open.push_back({Op::WeightGrad, action.stage, action.micro});
    if (action.stage > 0) open.push_back({Op::InputGrad, action.stage - 1, action.micro});
  }
  return schedule;
}

// Marks some neighbours F, I of two microbatches; whether the schedule can still run is another question.
void fuse_some(Schedule& schedule, Random& random) {
  for (auto& program : schedule.programs) {
    for (size_t i = 0; i + 1 < program.size(); ++i) {
      const bool fits = program[i].op == Op::Forward && program[i + 1].op == Op::InputGrad &&
                        program[i].micro != program[i + 1].micro;
      if (fits && random() % 2 == 0) program[i].fusion = Fusion::WithNext;
    }
  }
}

bool is_sound(const Schedule& schedule) { return validate(schedule, SendMode::Buffered).empty(); }

// A sound one, with fused pairs where that keeps it so.
Schedule random_fused_schedule(Random& random) {
  const Schedule plain = random_schedule(random);
  EXPECT_EQ(print(plain, validate(plain, SendMode::Buffered)), "");
  Schedule fused = plain;
  fuse_some(fused, random);
  return is_sound(fused) ? fused : plain;
}

CostModel random_costs(const Schedule& schedule, Random& random) {
  std::uniform_real_distribution<double> time(0.1, 3.0);
  CostModel cost{time(random), time(random), time(random), time(random)};
  if (random() % 2 == 0) cost.overlapped = time(random);
  for (int stage = 0; stage < schedule.num_stages && random() % 8 != 0; ++stage) {
    cost.stages.push_back({time(random), time(random), time(random)});
  }
  if (static_cast<int>(cost.stages.size()) != schedule.num_stages) cost.stages.clear();
  return cost;
}

// The definition, read out loud: a unit of work ends at max(end of the one before, ends of all it needs + latency) +
// cost. Sweeps over all programs until nothing changes.
class NaiveSimulator {
 public:
  NaiveSimulator(const Schedule& schedule, const CostModel& cost) : schedule_(schedule), cost_(cost) {}

  std::map<Action, double> ends() {
    for (bool changed = true; changed;) {
      changed = false;
      for (int rank = 0; rank < schedule_.num_ranks(); ++rank) changed |= swept(rank);
    }
    return ends_;
  }

 private:
  bool swept(int rank) {
    const Program& program = schedule_.programs[rank];
    bool changed = false;
    double free = 0;
    for (size_t i = 0; i < program.size(); ++i) {
      double begin = std::max(free, needed(program[i], rank));
      double length = cost_.compute(program[i]);
      const bool pair = program[i].fusion == Fusion::WithNext;
      if (pair) {
        begin = std::max(begin, needed(program[i + 1], rank));
        length = cost_.overlapped ? *cost_.overlapped : length + cost_.compute(program[i + 1]);
      }
      free = begin + length;
      for (size_t k = 0; k <= (pair ? 1 : 0); ++k) {
        changed |= ends_[program[i + k]] != free;
        ends_[program[i + k]] = free;
      }
      i += pair;
    }
    return changed;
  }

  // When all that the action needs from other actions has reached the rank.
  double needed(const Action& action, int rank) {
    std::vector<Action> all;
    if (action.op == Op::Forward && action.stage > 0) all.push_back({Op::Forward, action.stage - 1, action.micro});
    if (action.op == Op::InputGrad) {
      all.push_back({Op::Forward, action.stage, action.micro});
      if (action.stage + 1 < schedule_.num_stages) all.push_back({Op::InputGrad, action.stage + 1, action.micro});
    }
    if (action.op == Op::WeightGrad) all.push_back({Op::InputGrad, action.stage, action.micro});
    double latest = 0;
    for (const Action& need : all) {
      const bool elsewhere = schedule_.rank_of(need.stage, need.micro) != rank;
      for (const Fusion fusion : {Fusion::None, Fusion::WithNext}) {
        const auto end = ends_.find({need.op, need.stage, need.micro, fusion});
        if (end != ends_.end()) latest = std::max(latest, end->second + (elsewhere ? cost_.transfer : 0));
      }
    }
    return latest;
  }

  const Schedule& schedule_;
  const CostModel cost_;
  std::map<Action, double> ends_;
};

// Transfers around each unit of work: a pair's receives before it, its sends after it.
Schedule spelled_out(const Schedule& schedule) {
  Schedule result = with_comms(schedule);
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    Program& program = result.programs[rank];
    program.clear();
    const Program& plain = schedule.programs[rank];
    for (size_t i = 0; i < plain.size(); ++i) {
      const size_t end = i + (pair_begins(plain, i) ? 2 : 1);
      const auto transfers = [&](Op of_forward, Op of_backward, int forward_edge) {
        for (size_t k = i; k < end; ++k) {
          const Action& action = plain[k];
          if (action.op == Op::WeightGrad) continue;
          const int other = action.stage + (action.op == Op::Forward ? forward_edge : -forward_edge);
          if (other < 0 || other >= schedule.num_stages || schedule.rank_of(other, action.micro) == rank) continue;
          program.push_back({action.op == Op::Forward ? of_forward : of_backward, action.stage, action.micro});
        }
      };
      transfers(Op::RecvForward, Op::RecvBackward, -1);
      program.insert(program.end(), plain.begin() + i, plain.begin() + end);
      transfers(Op::SendForward, Op::SendBackward, +1);
      i = end - 1;
    }
  }
  return result;
}

TEST(RandomSchedules, TheSimulatorAgreesWithANaiveOne) {
  Random random(7);
  int fused = 0;
  for (int round = 0; round < 120; ++round) {
    const Schedule schedule = random_fused_schedule(random);
    const Schedule spelled = spelled_out(schedule);
    ASSERT_EQ(print(spelled, validate(spelled, SendMode::Buffered)), "");
    const CostModel cost = random_costs(schedule, random);
    std::map<Action, double> ends = NaiveSimulator(schedule, cost).ends();
    for (const auto& timeline : {simulate(schedule, cost), simulate(spelled, cost)}) {
      for (const auto& spans : timeline.ranks) {
        for (const auto& span : spans) {
          if (!computes(span.action.op)) continue;
          EXPECT_EQ(span.end, ends.at(span.action)) << braid::text(span.action);
          fused += span.action.fusion == Fusion::WithNext;
        }
      }
    }
  }
  EXPECT_GT(fused, 50);
}

// Any two actions of a rank swapped, or a mark of fusion set: either both accept the schedule or both refuse it.
TEST(RandomSchedules, TheSimulatorPlaysExactlyWhatTheValidatorAccepts) {
  Random random(11);
  int accepted = 0;
  for (int round = 0; round < 2000; ++round) {
    Schedule schedule = random_schedule(random);
    fuse_some(schedule, random);
    if (random() % 2 == 0) schedule = spelled_out(schedule);
    Program& program = schedule.programs[random() % schedule.programs.size()];
    if (random() % 2 == 0 && !program.empty()) {
      std::swap(program[random() % program.size()], program[random() % program.size()]);
    }
    const bool marked = std::any_of(program.begin(), program.end(), [&](const Action& action) {
      return action.fusion != Fusion::None && !pair_begins(program, &action - program.data());
    });
    if (marked) continue;  // the swap tore a pair: a fault of form, though it can be played
    const SendMode mode = random() % 4 == 0 && has_comms(schedule) ? SendMode::Rendezvous : SendMode::Buffered;
    const std::vector<Fault> faults = validate(schedule, mode);
    const bool of_form = std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
      return fault.text.find("fuses two") != fault.text.npos;
    });
    if (of_form) continue;
    bool plays = true;
    try {
      simulate(schedule, {}, mode);
    } catch (const ConfigError&) {
      plays = false;
    }
    EXPECT_EQ(plays, faults.empty()) << print(schedule, faults);
    accepted += plays;
  }
  EXPECT_GT(accepted, 400);
  EXPECT_LT(accepted, 1600);
}

// Ranks renumbered, so that the walk goes another way: the same stops and the same times.
TEST(RandomSchedules, TheNumbersOfRanksDoNotMatter) {
  Random random(13);
  for (int round = 0; round < 200; ++round) {
    Schedule schedule = random_schedule(random);
    fuse_some(schedule, random);  // some of them get stuck
    std::vector<int> place(schedule.num_ranks());
    for (size_t i = 0; i < place.size(); ++i) place[i] = static_cast<int>(i);
    std::shuffle(place.begin(), place.end(), random);
    Schedule moved = schedule;
    for (int& rank : moved.stage_rank) rank = place[rank];
    for (int& rank : moved.mirror_rank) rank = place[rank];
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) moved.programs[place[rank]] = schedule.programs[rank];
    for (const SendMode mode : {SendMode::Buffered, SendMode::Rendezvous}) {
      const auto stops = walk(spelled_out(schedule), mode, [](const Visit&) {});
      const auto moved_stops = walk(spelled_out(moved), mode, [](const Visit&) {});
      for (int rank = 0; rank < schedule.num_ranks(); ++rank) EXPECT_EQ(moved_stops[place[rank]], stops[rank]);
    }
    const Timeline times = unit_time(schedule);
    const Timeline moved_times = unit_time(moved);
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
      const auto& spans = times.ranks[rank];
      const auto& others = moved_times.ranks[place[rank]];
      ASSERT_EQ(spans.size(), others.size());
      for (size_t i = 0; i < spans.size(); ++i) EXPECT_EQ(spans[i].begin, others[i].begin);
    }
  }
}

TEST(RandomSchedules, TablesKeepAllOfThem) {
  Random random(17);
  for (int round = 0; round < 300; ++round) {
    Schedule schedule = random_fused_schedule(random);
    const Schedule read = from_csv(to_csv(schedule), "random");
    EXPECT_EQ(read, schedule) << to_csv(schedule);
  }
}

}  // namespace
}  // namespace braid::schedule::random_schedules_test
