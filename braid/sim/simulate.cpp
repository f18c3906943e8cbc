// The virtual clock over walk(): no event queue, since in-order ranks make times independent of the order of the walk.
#include "braid/sim/simulate.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/validate.h"

namespace braid {
namespace {

// What an action that computes takes; of the second of a fused pair, the pair.
using Taken = std::function<double(const Visit&)>;

class Clock {
 public:
  Clock(const Schedule& schedule, Taken taken, double transfer, SendMode mode)
      : schedule_(schedule),
        taken_(std::move(taken)),
        transfer_(transfer),
        mode_(mode),
        free_(schedule.num_ranks(), 0.0) {
    timeline_.ranks.resize(schedule.num_ranks());
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
      timeline_.ranks[rank].reserve(schedule.programs[rank].size());
    }
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
        // Under rendezvous the receiver's last action is done: its receive is the next visit.
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
        span.end = span.begin + taken_(visit);
        free = span.end;
    }
    timeline_.ranks[visit.rank].push_back(span);
  }

  Timeline timeline() && { return std::move(timeline_); }

 private:
  // The first of the pair has been visited as if it were alone.
  void end_pair(const Visit& visit) {
    auto& spans = timeline_.ranks[visit.rank];
    Span& first = spans.back();
    Span second{schedule_.programs[visit.rank][visit.index], first.begin};
    if (visit.after_rank >= 0) second.begin = std::max(first.begin, end_of(visit) + transfer_);
    second.end = second.begin + taken_(visit);
    first = {first.action, second.begin, second.end};
    free_[visit.rank] = second.end;
    spans.push_back(second);
  }

  double end_of(const Visit& visit) const { return timeline_.ranks[visit.after_rank][visit.after_index].end; }

  const Schedule& schedule_;
  const Taken taken_;
  const double transfer_;
  const SendMode mode_;
  std::vector<double> free_;  // by rank
  Timeline timeline_;
};

[[noreturn]] void refuse(const Schedule& schedule, SendMode mode) {
  std::vector<Problem> problems;
  for (const auto& fault : validate(schedule, mode)) {
    problems.push_back({cat("rank ", fault.rank), "", fault.text, ""});
  }
  throw ConfigError(std::move(problems));
}

Timeline played(const Schedule& schedule, Clock clock, SendMode mode) {
  const std::vector<int> stops = walk(schedule, mode, [&](const Visit& visit) { clock.visit(visit); });
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    if (stops[rank] != static_cast<int>(schedule.programs[rank].size())) refuse(schedule, mode);
  }
  return std::move(clock).timeline();
}

}  // namespace

Timeline simulate(const Schedule& schedule, const CostModel& cost, SendMode mode) {
  check(cost.stages.empty() || static_cast<int>(cost.stages.size()) == schedule.num_stages,
        "stage times are one for each stage");
  if (mode == SendMode::Rendezvous && !has_comms(schedule)) {
    const Schedule whole = with_comms(schedule);
    if (has_comms(whole)) return simulate(whole, cost, mode);
  }
  const auto taken = [&](const Visit& visit) {
    const Program& program = schedule.programs[visit.rank];
    const Action& action = program[visit.index];
    return pair_ends(program, visit.index) ? cost.compute_pair(program[visit.index - 1], action) : cost.compute(action);
  };
  return played(schedule, Clock(schedule, taken, cost.transfer, mode), mode);
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
  return played(schedule, Clock(schedule, taken, 0, SendMode::Buffered), SendMode::Buffered);
}

}  // namespace braid
