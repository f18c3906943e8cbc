// The learning rate of a step: linear warm-up, then one of five shapes.
#pragma once

#include "braid/spec/optimizer_spec.h"

namespace braid::optim {

// `step` counts from 0 to num_steps - 1. Warm-up step k has lr (k + 1) / warmup_steps. With n = decay_end() and
// x = (step - warmup_steps) / (n - 1 - warmup_steps), which is 0 at the first step after the warm-up and 1 at step n -
// 1, it is lr times 1 - (1 - f) x (linear) or f + (1 - f) (1 + cos(pi x)) / 2 (cosine), f the final_lr_fraction; from
// step n - 1 on f lr. So it does not depend on num_steps where decay_steps is given.
//
// wsd (warm-up, stable, decay; Hu et al., "MiniCPM", 2024): lr up to step n - 1 - c, then down by equal amounts to f lr
// at step n - 1, c the cooldown_length(). inverse-sqrt (Vaswani et al. 2017, section 5.3): lr sqrt(w / (step + 1)), w
// the warmup_steps, at least 1; it has no end.
double learning_rate(const OptimizerSpec& spec, int step, int num_steps);

}  // namespace braid::optim
