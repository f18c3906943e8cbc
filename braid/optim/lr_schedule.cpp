// The learning rate as a closed form of the step number, without state.
#include "braid/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::optim {

double learning_rate(const OptimizerSpec& spec, int step, int num_steps) {
  check(0 <= step && step < num_steps, "a step is one of the run's");
  if (step < spec.warmup_steps) return spec.lr * (step + 1) / spec.warmup_steps;
  if (spec.schedule == RateSchedule::Constant) return spec.lr;
  if (spec.schedule == RateSchedule::InverseSqrt)
    return spec.lr * std::sqrt(std::max(spec.warmup_steps, 1) / (step + 1.0));
  const double last = spec.final_lr_fraction;
  const int end = decay_end(spec, num_steps);
  if (spec.schedule == RateSchedule::Wsd) {
    const int length = cooldown_length(spec, num_steps), num_cooled = step + 1 - (end - length);
    if (num_cooled >= length) return spec.lr * last;
    return spec.lr * (num_cooled <= 0 ? 1 : 1 - (1 - last) * num_cooled / length);
  }
  const int num_decay = end - 1 - spec.warmup_steps, num_done = step - spec.warmup_steps;
  const double progress = num_done < num_decay ? static_cast<double>(num_done) / num_decay : 1.0;
  if (spec.schedule == RateSchedule::Linear) return spec.lr * (1 - (1 - last) * progress);
  return spec.lr * (last + (1 - last) * (1 + std::cos(std::numbers::pi * progress)) / 2);
}

}  // namespace braid::optim
