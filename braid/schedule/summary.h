// The measures by which schedules are compared: makespan, bubbles, peaks.
#pragma once

#include <vector>

#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"

namespace braid::schedule {

// The summary of one step. Times are in the timeline's unit. Busy time is that of the actions that compute
// (timeline.h), with a fused pair counted once. The span of a rank goes from the start of its first such action to the
// end of its last.
struct Summary {
  double makespan = 0;
  double bubble_time = 0;      // makespan - busy time of the busiest rank
  double bubble_fraction = 0;  // bubble_time / makespan; 0 for an empty timeline
  double span_bubble = 0;      // largest over ranks of (span - busy time)
  // (longest span - busy time of the busiest rank) / longest span; Qi et al., "Zero Bubble" (2023)
  double bubble_rate = 0;
  std::vector<int> peak_activations;           // per rank, see schedule/peaks.h
  std::vector<int> peak_pending_weight_grads;  // per rank
  int weight_versions = 1;                     // most versions that a stage keeps
};

// Returns the summary of `schedule` as executed in `timeline`.
Summary summary(const Schedule& schedule, const Timeline& timeline);

// Computes a summary from spans that are added one by one and not kept. REQUIRES: the spans of a rank are added in
// order.
class SpanTotals {
 public:
  explicit SpanTotals(int num_ranks) : ranks_(num_ranks) {}

  void add(int rank, const Span& span);
  Summary summary(const Schedule& schedule) const;

 private:
  struct Rank {
    double busy = 0;
    double first_begin = 0, last_end = 0;  // times of the actions that compute
    Action last = {Op::Reshard};           // the last action of any kind
    bool computes = false;
  };

  std::vector<Rank> ranks_;
  double first_begin_ = 0, last_end_ = 0;
  bool empty_ = true;
};

}  // namespace braid::schedule
