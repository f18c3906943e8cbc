// Schedules that never flush: a stage updates its weights while microbatches are under way, so several versions of them
// are in use. UPDATE k is the step of the stage that microbatch k's gradient is the last to go into. In the pictures F
// and B take one column, UPDATE none; p = 3.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/schedule/schedule.h"

namespace braid::schedule {

// 1F1B with an update after every backward. A microbatch keeps the weights of its forward until its backward (weight
// stashing), so rank r has at most min(m, p-r) versions. Drained at the end. Any m >= 1.
//
//   rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3     rank 0: F0 F1 F2 B0 UPDATE0 F3 B1 UPDATE1 B2 ...
//   rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3
//   rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3
//
// Source: Narayanan et al., "PipeDream" (2019), section 3 and figure 4.
Schedule pipedream(int ranks, int microbatches);

// request.group microbatches make an update, as many as ranks unless given; at least as many, and they divide m.
std::vector<Problem> pipedream_2bw_problems(const ScheduleRequest& request);

// 1F1B without a flush between groups, an update after the last backward of each. All microbatches of a group use the
// weights of one update before the newest, forward and backward, so two versions are enough.
//
//   rank 0  F0 F1 F2 .  .  B0 F3 B1 F4 B2 F5 B3 .  B4 .  B5     rank 0: ... B2 UPDATE2 F5 B3 B4 B5 UPDATE5
//   rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 F4 B3 F5 B4 .  B5
//   rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5
//
// Source: Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training" (2021), section 3.1.
Schedule pipedream_2bw(const ScheduleRequest& request);

}  // namespace braid::schedule
