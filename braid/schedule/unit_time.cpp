// One slot per compute action. It does not know real costs.
#include "braid/schedule/unit_time.h"

#include <algorithm>

#include "braid/schedule/walk.h"

namespace braid {

Timeline unit_time(const Schedule& schedule) {
  Timeline timeline;
  timeline.ranks.resize(schedule.num_ranks());
  walk(schedule, SendMode::Buffered, [&](const Visit& visit) {
    auto& spans = timeline.ranks[visit.rank];
    const Action& action = schedule.programs[visit.rank][visit.index];
    double begin = spans.empty() ? 0 : spans.back().end;
    if (visit.after_rank >= 0) begin = std::max(begin, timeline.ranks[visit.after_rank][visit.after_index].end);
    spans.push_back({action, begin, begin + (computes(action.op) ? 1 : 0)});
  });
  return timeline;
}

}  // namespace braid
