// Schedules that never flush. A stage updates its weights while microbatches are in flight, so several versions of the
// weights are in use. UPDATE k is the optimizer step of the stage whose last gradient is microbatch k's. In the
// pictures F and B take one column each, UPDATE none, and p = 3.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Returns 1F1B with an update after every backward. A microbatch uses the weights of its forward in its backward
// (weight stashing), so rank r keeps at most min(m, p-r) versions. The pipeline drains at the end. Any m >= 1 is valid.
//
//   rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3     rank 0: F0 F1 F2 B0 UPDATE0 F3 B1 UPDATE1 B2 ...
//   rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3
//   rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3
//
// Source: Narayanan et al., "PipeDream" (2019), section 3 and figure 4.
Schedule pipedream(int ranks, int microbatches);

// Returns the problems of a request. request.group is the number of microbatches per update, or p if it is 0. It must
// be at least p and divide m.
std::vector<Problem> pipedream_2bw_problems(const ScheduleRequest& request);

// Returns 1F1B without a flush between groups and with an update after the last backward of each group. In forward and
// backward, all microbatches of a group use the version one update older than the newest. Two versions are enough.
//
//   rank 0  F0 F1 F2 .  .  B0 F3 B1 F4 B2 F5 B3 .  B4 .  B5     rank 0: ... B2 UPDATE2 F5 B3 B4 B5 UPDATE5
//   rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 F4 B3 F5 B4 .  B5
//   rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5
//
// Source: Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training" (2021), section 3.1.
Schedule pipedream_2bw(const ScheduleRequest& request);

}  // namespace braid::schedule
