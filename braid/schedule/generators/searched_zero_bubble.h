// ZB-1p and ZB-2p: zero-bubble orders found by a heuristic for given times under a limit of memory. One stage per rank.
// Any m >= 1; times are those of the request, and orders depend on their ties: take whole numbers where it matters.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Times are finite and at least 0, activation is above 0, pending is from 0 to activation.
std::vector<Problem> searched_zero_bubble_problems(const ScheduleRequest& request);

// The shortest of eight greedy orders in which activations and pending weight gradients of a rank never take more
// memory than p activations, which is what 1F1B's first rank holds. As short as ZB-H1 for m >= 2p-1.
//
//   rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3     p = 3, m = 4, all times 1
//   rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
//
// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 3.1 and table 5.
Schedule zb_1p(const ScheduleRequest& request);

// The same with twice the memory, which is enough for nearly no bubble.
//
//   rank 0  F0 F1 F2 F3 .  I0 W0 I1 W1 I2 W2 I3 W3
//   rank 1  .  F0 F1 F2 I0 F3 I1 W0 I2 W1 I3 W2 W3
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3
//
Schedule zb_2p(const ScheduleRequest& request);

}  // namespace braid::schedule
