// The dynamic loss scale. It is doubled after a number of finite steps and halved on overflow.
#include "braid/optim/loss_scaler.h"

#include <algorithm>
#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::optim {

LossScaler::LossScaler(double first_scale) {
  state_.scale = std::clamp(std::exp2(std::round(std::log2(first_scale))), kSmallest, kLargest);
}

void LossScaler::update(Gradients gradients) {
  if (gradients == Gradients::Overflowed) {
    if (state_.scale <= kSmallest) throw RunError(cat("gradients overflow even at a loss scale of ", state_.scale));
    state_.scale /= 2;
    state_.num_finite = 0;
  } else if (++state_.num_finite == kGrowthInterval) {
    state_.scale = std::min(2 * state_.scale, kLargest);
    state_.num_finite = 0;
  }
}

}  // namespace braid::optim
