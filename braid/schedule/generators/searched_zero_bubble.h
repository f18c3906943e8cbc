// ZB-1p and ZB-2p: zero-bubble orders with one stage per rank, found by a heuristic for the times of the request under
// a memory limit. Any m >= 1 is valid. Orders depend on ties between sums of times; use integer times for reproducible
// ties.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Returns the problems of a request. Times must be finite and at least 0, `activation` above 0, and `pending` from 0 to
// `activation`.
std::vector<Problem> searched_zero_bubble_problems(const ScheduleRequest& request);

// Returns the shortest of eight greedy orders. In each, the activations and pending weight gradients of a rank never
// take more memory than p activations, which 1F1B's first rank holds. The step is as short as ZB-H1's for m >= 2p-1.
//
//   rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3     p = 3, m = 4, all times 1
//   rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
//
// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 3.1 and table 5.
Schedule zb_1p(const ScheduleRequest& request);

// Returns the same with twice the memory limit, which is enough to leave almost no bubble.
//
//   rank 0  F0 F1 F2 F3 .  I0 W0 I1 W1 I2 W2 I3 W3
//   rank 1  .  F0 F1 F2 I0 F3 I1 W0 I2 W1 I3 W2 W3
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3
//
Schedule zb_2p(const ScheduleRequest& request);

}  // namespace braid::schedule
