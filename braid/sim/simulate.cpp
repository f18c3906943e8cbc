// The virtual clock over walk(): no event queue, since in-order ranks make times independent of the order of the walk.
#include "braid/sim/simulate.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/validate.h"

namespace braid {
namespace {

class Clock {
 public:
  Clock(const Schedule& schedule, const CostModel& cost, SendMode mode)
      : schedule_(schedule), cost_(cost), mode_(mode), free_(schedule.num_ranks(), 0.0) {
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
        span.end = span.begin + cost_.transfer;
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
        if (waits) span.begin = std::max(free, end_of(visit) + cost_.transfer);
        span.end = span.begin + cost_.compute(action);
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
    if (visit.after_rank >= 0) second.begin = std::max(first.begin, end_of(visit) + cost_.transfer);
    second.end = second.begin + cost_.compute_pair(first.action, second.action);
    first = {first.action, second.begin, second.end};
    free_[visit.rank] = second.end;
    spans.push_back(second);
  }

  double end_of(const Visit& visit) const { return timeline_.ranks[visit.after_rank][visit.after_index].end; }

  const Schedule& schedule_;
  const CostModel cost_;
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

}  // namespace

Timeline simulate(const Schedule& schedule, const CostModel& cost, SendMode mode) {
  check(cost.stages.empty() || static_cast<int>(cost.stages.size()) == schedule.num_stages,
        "stage times are one for each stage");
  if (mode == SendMode::Rendezvous && !has_comms(schedule)) {
    const Schedule whole = with_comms(schedule);
    if (has_comms(whole)) return simulate(whole, cost, mode);
  }
  Clock clock(schedule, cost, mode);
  const std::vector<int> stops = walk(schedule, mode, [&](const Visit& visit) { clock.visit(visit); });
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    if (stops[rank] != static_cast<int>(schedule.programs[rank].size())) refuse(schedule, mode);
  }
  return std::move(clock).timeline();
}

}  // namespace braid
