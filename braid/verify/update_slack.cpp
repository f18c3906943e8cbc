// The slack of a step adds to that of the steps before.
#include "braid/verify/update_slack.h"

namespace braid::verify {

void set_update_slack(Recording& recording, const Rounding& rounding) {
  std::map<std::string, at::Tensor> slack;
  for (size_t i = 0; i < recording.steps.size(); ++i) {
    RecordedStep& step = recording.steps[i];
    const RecordedTensors& before = i == 0 ? recording.start : recording.steps[i - 1].masters;
    for (auto& [name, gradient] : step.gradients) {
      const Place place{static_cast<int64_t>(i) + 1, Phase::Gradients, rounding.subjects.of_param(name), 0};
      const double error = rounding.bound(place, {.scale = gradient.scale});
      RecordedTensor& master = step.masters.at(name);
      const double move = scale_of(master.whole.to(at::kDouble).sub(before.at(name).whole.to(at::kDouble)));
      // 0 / 0: the gradient is zero in all runs, as that of a token which no microbatch has.
      const at::Tensor part = gradient.whole.to(at::kDouble).abs().reciprocal().mul(error).nan_to_num(0).clamp_max(1);
      at::Tensor& sum = slack[name];
      sum = sum.defined() ? sum.add(part, 2 * move) : part.mul(2 * move);
      master.slack = step.weights.at(name).slack = sum;
    }
  }
}

}  // namespace braid::verify
