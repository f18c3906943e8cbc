// When each action of a step ran. Written by the runtime and by the simulator alike, so both can be drawn and compared.
//
// There is one span per action, in the order they ran. A fused pair has two, one right after the other, the first with
// its mark; both say when the pair as a whole began and ended, and what both make is there at that end. Whoever sums
// times must leave out the second (second_of_pair), as busy() does.
#pragma once

#include <vector>

#include "braid/schedule/action.h"
#include "braid/schedule/schedule.h"

namespace braid::schedule {

struct Span {
  Action action;
  double begin = 0;  // seconds for the runtime, units for the simulator
  double end = 0;
};

struct Timeline {
  std::vector<std::vector<Span>> ranks;  // each in the order they ran

  double first_begin() const;      // 0 when empty
  double makespan() const;         // last end minus first begin, over all ranks
  double busy(int rank) const;     // spans of ops that compute, a fused pair once
  double busiest() const;          // the largest busy()
  double bubble_fraction() const;  // (makespan - busiest) / makespan, 0 when empty
};

// True for ops that keep a rank's device at work: F, B, I, W, RECOMPUTE, UPDATE. False for those that communicate.
bool computes(Op op);

// True for the span that repeats the times of the one before it, with which it is fused.
bool second_of_pair(const std::vector<Span>& spans, size_t index);

// The time of all spans that compute, a fused pair counted once.
double busy(const std::vector<Span>& spans);

// A schedule on the simplest clock, for pictures and tables: F, B, I, W and a fused pair take one slot each, all other
// actions none.

// When each action of the schedule runs, in slots from 0; sends are buffered. Actions that can never run are left out.
Timeline unit_time(const Schedule& schedule);

}  // namespace braid::schedule
