// One slot per compute action.
#include "braid/schedule/unit_time.h"

#include <algorithm>

#include "braid/schedule/walk.h"

namespace braid::schedule {

Timeline unit_time(const Schedule& schedule) {
  Timeline timeline;
  timeline.ranks.resize(schedule.num_ranks());
  walk(schedule, SendMode::Buffered, [&](const Visit& visit) {
    auto& spans = timeline.ranks[visit.rank];
    const Program& program = schedule.programs[visit.rank];
    const Action& action = program[visit.index];
    const bool second = pair_ends(program, visit.index);
    double begin = spans.empty() ? 0 : second ? spans.back().begin : spans.back().end;
    if (visit.after_rank >= 0) begin = std::max(begin, timeline.ranks[visit.after_rank][visit.after_index].end);
    const double end = begin + (action.op <= Op::WeightGrad ? 1 : 0);
    if (second) spans.back() = {spans.back().action, begin, end};
    spans.push_back({action, begin, end});
  });
  return timeline;
}

}  // namespace braid::schedule
