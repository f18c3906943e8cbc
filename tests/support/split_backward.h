// Schedules with split backwards that no generator makes.
#pragma once

#include "braid/schedule/schedule.h"

namespace braid {

// Replaces every B by I and W. Apply before the transfers, so that the send stands between them.
inline Schedule split_backward(const Schedule& schedule) {
  Schedule result = schedule;
  for (Program& program : result.programs) {
    Program longer;
    for (const Action& action : program) {
      if (action.op == Op::FullBackward) {
        longer.push_back({Op::InputGrad, action.stage, action.micro});
        longer.push_back({Op::WeightGrad, action.stage, action.micro});
      } else {
        longer.push_back(action);
      }
    }
    program = longer;
  }
  return result;
}

}  // namespace braid
