// ZB-V: two stages per rank in a V, so the first and the last stage are neighbours on rank 0, and memory is even.
#pragma once

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Rank r owns stages r and 2p-1-r. With F = I = W no rank idles between its first and its last action, and every rank
// holds at most 2p pairs: what 1F1B's first rank holds, as a stage is half as large. Any m >= 1.
//
//   rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3
//   rank 1  .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3
//
// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 6; the fixed order is PyTorch's
// ScheduleZBVZeroBubble.
Schedule zb_v(int ranks, int microbatches);

}  // namespace braid::schedule
