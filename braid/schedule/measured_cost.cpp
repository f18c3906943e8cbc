// The times of measured spans, by stage and op.
#include "braid/schedule/measured_cost.h"

#include <algorithm>

#include "braid/base/median.h"

namespace braid::schedule {

void MeasuredCost::add(const Timeline& timeline) {
  for (const auto& row : timeline.ranks) {
    bool fused = false;  // whether the span is fused with the previous one
    for (const Span& span : row) {
      const bool pair = fused || span.action.fusion == Fusion::WithNext;
      fused = span.action.fusion == Fusion::WithNext;
      const double seconds = span.end - span.begin;
      const Op op = span.action.op;
      if (op == Op::RecvForward || op == Op::RecvBackward) receives_.push_back(seconds);
      if (!pair && !communicates(op)) seconds_[{span.action.stage, op}].push_back(seconds);
    }
  }
}

double MeasuredCost::median(int stage, Op op) const {
  const auto found = seconds_.find({stage, op});
  return found == seconds_.end() ? 0 : braid::median(found->second);
}

CostModel MeasuredCost::cost(int num_stages) const {
  CostModel model;
  for (int stage = 0; stage < num_stages; ++stage) {
    StageTimes times;
    const double full = median(stage, Op::FullBackward), input = median(stage, Op::InputGrad);
    times.forward = median(stage, Op::Forward);
    times.input_grad = input > 0 ? input : full;
    times.weight_grad = median(stage, Op::WeightGrad);
    times.recompute = median(stage, Op::Recompute);
    times.update = median(stage, Op::Update);
    model.stages.push_back(times);
  }
  if (!receives_.empty()) model.transfer = *std::min_element(receives_.begin(), receives_.end());
  return model;
}

}  // namespace braid::schedule
