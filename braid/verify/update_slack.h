// The differences of updated parameters that the rounding of their gradients explains, number by number.
#pragma once

#include "braid/spec/optimizer_spec.h"
#include "braid/verify/recording.h"
#include "braid/verify/rounding.h"

namespace braid::verify {

// Sets the slack of the recorded masters and weights of all steps.
//
// An optimizer that divides by a number's own size, such as AdamW, moves it by about the learning rate even if its
// gradient is nothing but rounding, and then the direction is chance. So if the direction d may differ by e, the number
// may differ by a part min(1, e / |d|) of the step's largest move, up or down:
//
//   slack = sum over steps of 2 x largest move x min(1, e / |d|)
//   slack = sum over steps of learning rate x e                      for SGD, which does not divide
//
//   AdamW    d = g                               g: the gradient after clipping
//   Adagrad  d = g + decay x weight
//   SGD      d = momentum x (d of the step before) + g + decay x weight
//   Lion     d = beta1 x m + (1 - beta1) x g     m: the momentum of the steps before
//
// States in bfloat16 are rounded at random, and a rounding may fall otherwise: from the second update on, the part is
// larger by 1.5 x 2^-7, and momentum has an error of 2^-7 of itself.
//
// The error e is the sum of those of the terms: a weight's error is its slack. AdamW's moments need no term, because
// sqrt(second moment) is at least a fixed part of each step's |g|.
//
// REQUIRES: the optimizer moves each number by its own gradients, unlike Muon.
void set_update_slack(Recording& recording, const Rounding& rounding, const OptimizerSpec& spec);

}  // namespace braid::verify
