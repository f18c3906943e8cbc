// Looking times up.
#include "braid/sim/cost_model.h"

namespace braid {

double CostModel::compute(const Action& action) const {
  const StageTimes times = stages.empty() ? StageTimes{forward, input_grad, weight_grad, recompute, update}
                                          : stages.at(static_cast<size_t>(action.stage));
  switch (action.op) {
    case Op::Forward:
      return times.forward;
    case Op::FullBackward:
      return times.input_grad + times.weight_grad;
    case Op::InputGrad:
      return times.input_grad;
    case Op::WeightGrad:
      return times.weight_grad;
    case Op::Recompute:
      return times.recompute.value_or(times.forward);
    case Op::Update:
      return times.update;
    default:
      return 0;
  }
}

double CostModel::compute_pair(const Action& forward, const Action& backward) const {
  return overlapped.value_or(compute(forward) + compute(backward));
}

}  // namespace braid
