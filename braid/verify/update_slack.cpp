// The slack of a step adds to that of the steps before.
#include "braid/verify/update_slack.h"

#include <ATen/ops/zeros_like.h>

#include "braid/optim/grad_norm.h"
#include "braid/optim/parameter_groups.h"

namespace braid::verify {
namespace {

// Numbers, and how much each may differ.
struct Uncertain {
  at::Tensor value, error;
};

// Returns the relative change of a state that another rounding of it makes. States of 8 bits are not verified.
double state_flip(StateType type) { return type == StateType::BFloat16 ? 0x1p-7 : 0; }

// Returns a x + b y. REQUIRES: factors are not negative.
Uncertain sum_of(double a, const Uncertain& x, double b, const Uncertain& y) {
  return {x.value.mul(a).add(y.value, b), x.error.mul(a).add(y.error, b)};
}

// The updates of one parameter, step by step (optim/element_update.h).
class ParamUpdates {
 public:
  ParamUpdates(const OptimizerSpec& spec, const optim::GroupRates& rates, const at::Tensor& like)
      : spec_(spec),
        rates_(rates),
        momentum_{at::zeros_like(like), at::zeros_like(like)},
        slack_(at::zeros_like(like)) {}

  // Adds the slack of an update and returns that of all updates so far.
  const at::Tensor& add(const Uncertain& gradient, const at::Tensor& before, const at::Tensor& after, double lr) {
    const double move = scale_of(after.sub(before));
    if (move == 0) return slack_;  // a step that is skipped
    const Uncertain direction = next_direction(gradient, before);
    if (spec_.kind == OptimizerKind::Sgd) return slack_ = slack_.add(direction.error, lr * rates_.lr_scale);
    // 0 / 0: the gradient is zero in all runs, as that of a token which no microbatch has.
    const at::Tensor part = direction.error.div(direction.value.abs()).nan_to_num(0, 1).add(of_states_).clamp_max(1);
    of_states_ = kFlips * state_flip(spec_.state_dtype);
    return slack_ = slack_.add(part, 2 * move);
  }

 private:
  Uncertain next_direction(const Uncertain& gradient, const at::Tensor& before) {
    const bool is_coupled = spec_.kind == OptimizerKind::Sgd || spec_.kind == OptimizerKind::Adagrad;
    const Uncertain pull = sum_of(1, gradient, is_coupled ? rates_.weight_decay : 0, {before, slack_});
    momentum_.error.add_(momentum_.value.abs(), state_flip(spec_.state_dtype));
    if (spec_.kind == OptimizerKind::Sgd) return momentum_ = sum_of(spec_.momentum, momentum_, 1, pull);
    if (spec_.kind != OptimizerKind::Lion) return pull;
    const Uncertain direction = sum_of(spec_.beta1, momentum_, 1 - spec_.beta1, pull);
    momentum_ = sum_of(spec_.beta2, momentum_, 1 - spec_.beta2, pull);
    return direction;
  }

  static constexpr double kFlips = 1.5;  // of the first moment, and of the root of the second

  const OptimizerSpec& spec_;
  const optim::GroupRates rates_;
  Uncertain momentum_;
  double of_states_ = 0;  // part of a move that roundings of the states of the steps before may change
  at::Tensor slack_;
};

// The gradients of a step that the optimizer sees.
class StepGradients {
 public:
  StepGradients(const RecordedStep& step, int64_t number, const Rounding& rounding, double clip_norm)
      : step_(step), number_(number), rounding_(rounding) {
    const double norm = step.grad_norm / step.loss_scale;
    scale_ = optim::clip_scale(norm, clip_norm) / step.loss_scale;
    const Place place{number, Phase::Norm, rounding.subjects.norm(), 0};
    if (norm > clip_norm && clip_norm > 0)
      scale_error_ = rounding.bound(place, {.scale = step.grad_norm}) / step.grad_norm;
  }

  Uncertain of(const std::string& name) const {
    const RecordedTensor& gradient = step_.gradients.at(name);
    const Place place{number_, Phase::Gradients, rounding_.subjects.of_param(name), 0};
    const at::Tensor value = gradient.whole.to(at::kDouble).mul(scale_);
    return {value, value.abs().mul(scale_error_).add(scale_ * rounding_.bound(place, {.scale = gradient.scale}))};
  }

 private:
  const RecordedStep& step_;
  const int64_t number_;
  const Rounding& rounding_;
  double scale_ = 1, scale_error_ = 0;  // the error is relative
};

}  // namespace

void set_update_slack(Recording& recording, const Rounding& rounding, const OptimizerSpec& spec) {
  std::map<std::string, ParamUpdates> updates;
  for (size_t i = 0; i < recording.steps.size(); ++i) {
    RecordedStep& step = recording.steps[i];
    const RecordedTensors& before = i == 0 ? recording.start : recording.steps[i - 1].masters;
    const StepGradients gradients(step, static_cast<int64_t>(i) + 1, rounding, spec.clip_norm);
    for (auto& [name, master] : step.masters) {
      const at::Tensor from = before.at(name).whole.to(at::kDouble), to = master.whole.to(at::kDouble);
      const optim::GroupRates rates = optim::rates_of(name, recording.decays.at(name), spec);
      ParamUpdates& of_param = updates.try_emplace(name, spec, rates, from).first->second;
      master.slack = step.weights.at(name).slack = of_param.add(gradients.of(name), from, to, step.learning_rate);
    }
  }
}

}  // namespace braid::verify
