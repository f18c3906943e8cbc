// The learning rate of a step: linear warm-up, then cosine, linear or constant.
#pragma once

#include "braid/spec/optimizer_spec.h"

namespace braid {

// `step` counts from 0 to num_steps - 1. Warm-up step k has lr (k + 1) / warmup_steps; the last step has
// final_lr_fraction * lr (cosine and linear).
double learning_rate(const OptimizerSpec& spec, int step, int num_steps);

}  // namespace braid
