// The differences of updated parameters that the rounding of their gradients explains, number by number.
#pragma once

#include "braid/verify/recording.h"
#include "braid/verify/rounding.h"

namespace braid::verify {

// Sets the slack of the recorded masters and weights of all steps.
//
// An optimizer that divides a gradient by its own size, such as AdamW, moves a number by about the learning rate even
// if its gradient is nothing but rounding, and then the direction is chance. So a gradient g that may differ by e moves
// its number by a part min(1, e / |g|) of the step's largest move, up or down:
//
//   slack = sum over steps of 2 x largest move x min(1, e / |g|)
//
// REQUIRES: the optimizer moves each number by its own gradients, unlike Muon.
void set_update_slack(Recording& recording, const Rounding& rounding);

}  // namespace braid::verify
