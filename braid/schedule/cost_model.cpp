// Looking times up.
#include "braid/schedule/cost_model.h"

#include "braid/base/errors.h"

namespace braid::schedule {

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

CostModel with_share(CostModel cost, double share) {
  check(cost.stages.empty(), "times of single stages are of those stages, not of a share of others");
  for (double* time : {&cost.forward, &cost.input_grad, &cost.weight_grad, &cost.update}) *time *= share;
  for (std::optional<double>* time : {&cost.overlapped, &cost.recompute}) {
    if (*time) **time *= share;
  }
  return cost;
}

}  // namespace braid::schedule
