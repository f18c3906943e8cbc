// The learning rate of a step: linear warm-up, then cosine, linear or constant.
#pragma once

#include "braid/spec/optimizer_spec.h"

namespace braid {

// `step` counts from 0 to num_steps - 1. Warm-up step k has lr (k + 1) / warmup_steps. With n = decay_end() and
// x = (step - warmup_steps) / (n - 1 - warmup_steps), which is 0 at the first step after the warm-up and 1 at step n -
// 1, it is lr times 1 - (1 - f) x (linear) or f + (1 - f) (1 + cos(pi x)) / 2 (cosine), f the final_lr_fraction; from
// step n - 1 on f lr. So it does not depend on num_steps where decay_steps is given.
double learning_rate(const OptimizerSpec& spec, int step, int num_steps);

}  // namespace braid
