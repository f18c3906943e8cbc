// Sums and maxima over spans.
#include "braid/sim/summary.h"

#include <algorithm>

#include "braid/schedule/peaks.h"

namespace braid {
namespace {

double compute_span(const std::vector<Span>& spans) {
  const auto is_compute = [](const Span& span) { return computes(span.action.op); };
  const auto first = std::find_if(spans.begin(), spans.end(), is_compute);
  if (first == spans.end()) return 0;
  return std::find_if(spans.rbegin(), spans.rend(), is_compute)->end - first->begin;
}

}  // namespace

Summary summary(const Schedule& schedule, const Timeline& timeline) {
  Summary result;
  result.makespan = timeline.makespan();
  double busiest = 0;
  double longest = 0;
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const double busy = timeline.busy(static_cast<int>(rank));
    const double span = compute_span(timeline.ranks[rank]);
    busiest = std::max(busiest, busy);
    longest = std::max(longest, span);
    result.span_bubble = std::max(result.span_bubble, span - busy);
  }
  result.bubble_time = result.makespan - busiest;
  result.bubble_fraction = result.makespan > 0 ? result.bubble_time / result.makespan : 0;
  result.bubble_rate = longest > 0 ? (longest - busiest) / longest : 0;
  result.peak_activations = peak_activations(schedule);
  result.peak_pending_weight_grads = peak_pending_weight_grads(schedule);
  result.weight_versions = weight_versions(schedule);
  return result;
}

}  // namespace braid
