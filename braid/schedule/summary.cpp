// The summary of a timeline: sums and maxima over its spans.
#include "braid/schedule/summary.h"

#include <algorithm>

#include "braid/schedule/peaks.h"

namespace braid::schedule {

void SpanTotals::add(int rank, const Span& span) {
  first_begin_ = empty_ ? span.begin : std::min(first_begin_, span.begin);
  last_end_ = empty_ ? span.end : std::max(last_end_, span.end);
  empty_ = false;
  Rank& totals = ranks_[rank];
  const bool second = fused(totals.last, span.action);
  totals.last = span.action;
  if (!computes(span.action.op)) return;
  if (!totals.computes) totals.first_begin = span.begin;
  totals.computes = true;
  totals.last_end = span.end;
  if (!second) totals.busy += span.end - span.begin;
}

Summary SpanTotals::summary(const Schedule& schedule) const {
  Summary result;
  result.makespan = last_end_ - first_begin_;
  double busiest = 0;
  double longest = 0;
  for (const Rank& rank : ranks_) {
    const double span = rank.last_end - rank.first_begin;
    busiest = std::max(busiest, rank.busy);
    longest = std::max(longest, span);
    result.span_bubble = std::max(result.span_bubble, span - rank.busy);
  }
  result.bubble_time = result.makespan - busiest;
  result.bubble_fraction = result.makespan > 0 ? result.bubble_time / result.makespan : 0;
  result.bubble_rate = longest > 0 ? (longest - busiest) / longest : 0;
  result.peak_activations = peak_activations(schedule);
  result.peak_pending_weight_grads = peak_pending_weight_grads(schedule);
  result.weight_versions = weight_versions(schedule);
  return result;
}

Summary summary(const Schedule& schedule, const Timeline& timeline) {
  SpanTotals totals(static_cast<int>(timeline.ranks.size()));
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    for (const Span& span : timeline.ranks[rank]) totals.add(static_cast<int>(rank), span);
  }
  return totals.summary(schedule);
}

}  // namespace braid::schedule
