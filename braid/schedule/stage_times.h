// The file of stage times: what a profile of a model measured, for the simulator. It works on text; files are the
// caller's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/schedule/cost_model.h"

namespace braid::schedule {

// One line per stage, stage 0 first: the times of a forward, an input-gradient and a weight-gradient pass, and where
// wanted of a recompute and of an update, all from 0 to kMostTime, in any one unit and separated by blanks. What
// follows a # is a comment, lines without a number do not count.
//
//   # forward  input_grad  weight_grad  recompute  update
//   1.5        1.25        1.0
//   1.0        1.0         1.0          1.0        0.5
//
// Throws ConfigError naming every line that does not fit; `origin` names the text.
std::vector<StageTimes> parse_stage_times(std::string_view text, const std::string& origin);

}  // namespace braid::schedule
