// How long each operation takes. It does not know why: the numbers are measured, planned or made up.
#pragma once

#include "braid/schedule/action.h"

namespace braid {

// In any one unit of time; the same on every stage.
struct CostModel {
  double forward = 1;
  double input_grad = 1;
  double weight_grad = 1;
  double transfer = 0;  // latency of one tensor between two ranks; it occupies neither

  // Of a compute action; a full backward takes input_grad + weight_grad. 0 for other actions.
  double compute(Op op) const;
};

}  // namespace braid
