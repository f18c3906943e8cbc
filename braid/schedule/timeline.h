// When each action of a step ran. Written by the runtime and by the simulator alike, so both can be drawn and compared.
#pragma once

#include <vector>

#include "braid/schedule/action.h"

namespace braid {

struct Span {
  Action action;
  double begin = 0;  // seconds for the runtime, units for the simulator
  double end = 0;
};

struct Timeline {
  std::vector<std::vector<Span>> ranks;  // in the order they ran

  double makespan() const;         // last end minus first begin, over all ranks
  double busy(int rank) const;     // compute spans only: F, B, I, W
  double busiest() const;          // the largest busy()
  double bubble_fraction() const;  // (makespan - busiest) / makespan, 0 when empty
};

// True for ops that compute (F, B, I, W), false for those that communicate.
bool computes(Op op);

}  // namespace braid
