// The times at which the actions of a step ran. The runtime and the simulator both make timelines, which can be drawn
// and compared.
//
// There is one span per action, in the order in which they ran. A fused pair has two, one right after the other, the
// first with its mark. Both have the begin and end of the whole pair, at whose end the outputs of both are available. A
// sum of times must leave out the second (second_of_pair()), as busy() does.
#pragma once

#include <vector>

#include "braid/schedule/action.h"
#include "braid/schedule/schedule.h"

namespace braid::schedule {

struct Span {
  Action action;
  double begin = 0;  // seconds from the runtime, units of the cost model from the simulator
  double end = 0;
};

struct Timeline {
  std::vector<std::vector<Span>> ranks;  // spans of each rank, in the order in which they ran

  double first_begin() const;      // 0 if empty
  double makespan() const;         // last end minus first begin, of all ranks
  double busy(int rank) const;     // time of the spans that compute, a fused pair counted once
  double busiest() const;          // the largest busy()
  double bubble_fraction() const;  // (makespan - busiest) / makespan; 0 if empty
};

// Returns true for ops that keep a rank's device busy: F, B, I, W, RECOMPUTE, UPDATE. Returns false for those that
// communicate.
bool computes(Op op);

// Returns true if spans[index] is the second of a fused pair, with the same times as the span before it.
bool second_of_pair(const std::vector<Span>& spans, size_t index);

// Returns the total time of the spans that compute, with a fused pair counted once.
double busy(const std::vector<Span>& spans);

// Returns the schedule's timeline in slots from 0, for pictures and tables. F, B, I, W and a fused pair take one slot
// each, all other actions none. Sends are buffered. Actions that can never run are left out.
Timeline unit_time(const Schedule& schedule);

}  // namespace braid::schedule
