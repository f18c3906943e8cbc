// The learning rate of a step: linear warm-up, then one of five schedules.
#pragma once

#include "braid/spec/optimizer_spec.h"

namespace braid::optim {

// Returns the learning rate of `step`, which counts from 0 to num_steps - 1. Let w be warmup_steps, f
// final_lr_fraction, n decay_end() and c cooldown_length(). Warm-up step k has the rate lr (k + 1) / w. The later rates
// are:
//
// constant: lr.
//
// linear: lr (1 - (1 - f) x). cosine: lr (f + (1 - f) (1 + cos(pi x)) / 2). Here x = (step - w) / (n - 1 - w), which is
// 0 at the first step after the warm-up and 1 at step n - 1. From step n - 1 on, the rate is f lr. So it does not
// depend on num_steps if decay_steps is given.
//
// wsd (warm-up, stable, decay; Hu et al., "MiniCPM", 2024): lr up to step n - 1 - c, then lower by equal amounts to f
// lr at step n - 1.
//
// inverse-sqrt (Vaswani et al. 2017, section 5.3): lr sqrt(max(w, 1) / (step + 1)). It has no end.
double learning_rate(const OptimizerSpec& spec, int step, int num_steps);

}  // namespace braid::optim
