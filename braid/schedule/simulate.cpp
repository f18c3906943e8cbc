// The virtual clock over walk(). It needs no event queue: ranks run in order, so times do not depend on the order of
// the walk.
#include "braid/schedule/simulate.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/validate.h"
#include "braid/schedule/walk.h"

namespace braid::schedule {
namespace {

class SharedClock {
 public:
  SharedClock(const Schedule& schedule, const CostModel& cost, double cores)
      : schedule_(schedule), cost_(cost), cores_(cores), ranks_(schedule.num_ranks()) {
    timeline_.ranks.resize(ranks_.size());
    for (size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].after.resize(schedule.programs[rank].size());
    const std::vector<int> stops = walk(schedule, SendMode::Buffered, [this](const Visit& visit) {
      ranks_[visit.rank].after[visit.index] = {visit.after_rank, visit.after_index};
    });
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      check(stops[rank] == static_cast<int>(schedule.programs[rank].size()), "a schedule that is played has an end");
    }
  }

  Timeline run() && {
    while (true) {
      for (size_t rank = 0; rank < ranks_.size(); ++rank) begin_next(rank);
      const auto computing = std::ranges::count_if(ranks_, [](const Rank& rank) { return rank.actions > 0; });
      if (computing == 0) return std::move(timeline_);
      advance(std::min(1.0, cores_ / static_cast<double>(computing)));
    }
  }

 private:
  struct After {
    int rank = -1, index = -1;
  };
  struct Rank {
    std::vector<After> after;  // by action
    int done = 0;              // number of actions done
    int actions = 0;           // number of actions that it runs now: none, one, or a fused pair
    double left = 0;           // time that these still take at full speed
    double begin = 0;
  };

  bool is_there(const After& after) const { return after.rank < 0 || ranks_[after.rank].done > after.index; }

  void begin_next(size_t number) {
    Rank& rank = ranks_[number];
    const Program& program = schedule_.programs[number];
    if (rank.actions > 0 || rank.done == static_cast<int>(program.size())) return;
    const int count = pair_begins(program, rank.done) ? 2 : 1;
    for (int i = 0; i < count; ++i) {
      if (!is_there(rank.after[rank.done + i])) return;
    }
    const Action& action = program[rank.done];
    rank.left = count == 2 ? cost_.compute_pair(action, program[rank.done + 1]) : cost_.compute(action);
    rank.actions = count;
    rank.begin = now_;
  }

  // Advances the clock until the first of the running actions ends.
  void advance(double speed) {
    double least = std::numeric_limits<double>::infinity();
    for (const Rank& rank : ranks_) {
      if (rank.actions > 0) least = std::min(least, rank.left);
    }
    now_ += least / speed;
    for (size_t number = 0; number < ranks_.size(); ++number) {
      Rank& rank = ranks_[number];
      if (rank.actions == 0) continue;
      rank.left -= least;
      if (rank.left > 0) continue;
      for (int i = 0; i < rank.actions; ++i) {
        timeline_.ranks[number].push_back({schedule_.programs[number][rank.done + i], rank.begin, now_});
      }
      rank.done += rank.actions;
      rank.actions = 0;
    }
  }

  const Schedule& schedule_;
  const CostModel& cost_;
  const double cores_;
  std::vector<Rank> ranks_;
  double now_ = 0;
  Timeline timeline_;
};

}  // namespace

Timeline simulate_sharing(const Schedule& schedule, const CostModel& cost, double cores) {
  check(!has_comms(schedule) && cores > 0, "ranks share cores, and transfers take no time");
  return SharedClock(schedule, cost, cores).run();
}

namespace {

// The clock of simulate() and replay(). taken(visit) returns the time of a compute action. For the second action of a
// fused pair it returns the time of the pair.
template <class Taken>
class Clock {
 public:
  Clock(const Schedule& schedule, Taken taken, double transfer, SendMode mode, const SpanVisitor& spans)
      : schedule_(schedule),
        taken_(std::move(taken)),
        transfer_(transfer),
        mode_(mode),
        spans_(spans),
        free_(schedule.num_ranks(), 0.0),
        ends_(schedule.num_ranks()) {
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) ends_[rank].reserve(schedule.programs[rank].size());
  }

  void visit(const Visit& visit) {
    const Program& program = schedule_.programs[visit.rank];
    const Action& action = program[visit.index];
    if (pair_ends(program, visit.index)) return end_pair(visit);
    const bool waits = visit.after_rank >= 0;
    double& free = free_[visit.rank];
    Span span{action, free, free};
    switch (action.op) {
      case Op::SendForward:
      case Op::SendBackward:
        // Under rendezvous the receiver's previous action is done, and its receive is the next visit.
        if (waits) span.begin = std::max(free, free_[visit.after_rank]);
        span.end = span.begin + transfer_;
        if (mode_ == SendMode::Rendezvous) {
          span.begin = free;
          free = span.end;
        }
        break;
      case Op::RecvForward:
      case Op::RecvBackward:
        if (waits) span.end = std::max(free, end_of(visit));
        free = span.end;
        break;
      default:
        if (waits) span.begin = std::max(free, end_of(visit) + transfer_);
        if (pair_begins(program, visit.index)) {  // its second action is the next visit
          free = span.begin;
          return;
        }
        span.end = span.begin + taken_(visit);
        free = span.end;
    }
    put(visit.rank, span);
  }

 private:
  // Runs a fused pair. The rank's free time is now the time at which the first action may begin.
  void end_pair(const Visit& visit) {
    const Program& program = schedule_.programs[visit.rank];
    double& free = free_[visit.rank];
    const double begin = visit.after_rank >= 0 ? std::max(free, end_of(visit) + transfer_) : free;
    free = begin + taken_(visit);
    put(visit.rank, {program[visit.index - 1], begin, free});
    put(visit.rank, {program[visit.index], begin, free});
  }

  void put(int rank, const Span& span) {
    std::vector<double>& ends = ends_[rank];
    ends.push_back(span.end);
    __builtin_prefetch(&ends.back() + 8);  // prefetches the next cache line of one stream among thousands
    spans_(rank, span);
  }

  double end_of(const Visit& visit) const { return ends_[visit.after_rank][visit.after_index]; }

  const Schedule& schedule_;
  const Taken taken_;
  const double transfer_;
  const SendMode mode_;
  const SpanVisitor& spans_;
  std::vector<double> free_;               // by rank: time at which the rank is free
  std::vector<std::vector<double>> ends_;  // by rank and action
};

[[noreturn]] void refuse(const Schedule& schedule, SendMode mode) {
  std::vector<Problem> problems;
  for (const auto& fault : validate(schedule, mode)) {
    problems.push_back({cat("rank ", fault.rank), "", fault.text, ""});
  }
  throw ConfigError(std::move(problems));
}

template <class Taken>
void play(const Schedule& schedule, Clock<Taken> clock, SendMode mode) {
  const std::vector<int> stops = walk(schedule, mode, [&](const Visit& visit) { clock.visit(visit); });
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    if (stops[rank] != static_cast<int>(schedule.programs[rank].size())) refuse(schedule, mode);
  }
}

// Returns an empty timeline, with memory reserved for the actions of `schedule`.
Timeline roomy(const Schedule& schedule) {
  Timeline timeline;
  for (const Program& program : schedule.programs) timeline.ranks.emplace_back().reserve(program.size());
  return timeline;
}

SpanVisitor into(Timeline& timeline) {
  return [&timeline](int rank, const Span& span) { timeline.ranks[rank].push_back(span); };
}

}  // namespace

Timeline simulate(const Schedule& schedule, const CostModel& cost, SendMode mode) {
  Timeline timeline = roomy(schedule);
  simulate(schedule, cost, mode, into(timeline));
  return timeline;
}

void simulate(const Schedule& schedule, const CostModel& cost, SendMode mode, const SpanVisitor& visit) {
  check(cost.stages.empty() || static_cast<int>(cost.stages.size()) == schedule.num_stages,
        "stage times are one for each stage");
  if (mode == SendMode::Rendezvous && !has_comms(schedule)) {
    const Schedule whole = with_comms(schedule);
    if (has_comms(whole)) return simulate(whole, cost, mode, visit);
  }
  const auto taken = [&](const Visit& visit) {
    const Program& program = schedule.programs[visit.rank];
    const Action& action = program[visit.index];
    return pair_ends(program, visit.index) ? cost.compute_pair(program[visit.index - 1], action) : cost.compute(action);
  };
  play(schedule, Clock(schedule, taken, cost.transfer, mode, visit), mode);
}

Timeline replay(const Schedule& schedule, const Timeline& measured) {
  check(static_cast<int>(measured.ranks.size()) == schedule.num_ranks(), "a timeline has a row for each program");
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    check(measured.ranks[rank].size() == schedule.programs[rank].size(), "a row has a span for each action");
  }
  const auto taken = [&](const Visit& visit) {
    const Span& span = measured.ranks[visit.rank][visit.index];
    return computes(span.action.op) ? span.end - span.begin : 0;
  };
  Timeline timeline = roomy(schedule);
  const SpanVisitor visit = into(timeline);
  play(schedule, Clock(schedule, taken, 0, SendMode::Buffered, visit), SendMode::Buffered);
  return timeline;
}

}  // namespace braid::schedule
