// Zero-bubble schedules: ZB-V, ZB-H1 and ZB-H2. The backward is split into I (input gradient) and W (weight gradient),
// and W fills slots that would be a bubble. In the pictures every action takes one column. Any m >= 1 is valid. Source:
// Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 2 and figures 2 and 3.
#pragma once

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Returns ZB-V, with two stages per rank in a V. Rank r owns stages r and 2p-1-r, so the first and the last stage are
// on rank 0, and memory is even. With F = I = W no rank idles between its first and its last action. Every rank holds
// at most 2p pairs. This is the memory of 1F1B's first rank, since a stage is half as large.
//
//   rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3
//   rank 1  .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3
//
// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 6; the fixed order is PyTorch's
// ScheduleZBVZeroBubble.
Schedule zb_v(int ranks, int microbatches);

// Returns ZB-H1, with one stage per rank. Rank r warms up with min(m, p-1-r) forwards as in 1F1B, and its weight passes
// run r microbatches behind. The bubble is (p-1)(F+I-W) if m >= p and W <= I. Rank r holds min(m, p-r) activations and
// min(m, p) pending weight gradients.
//
//   rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3
//   rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
//
Schedule zb_h1(int ranks, int microbatches);

// Returns ZB-H2, with one stage per rank and twice ZB-H1's warm-up and delay. With F = I = W and m >= 2p-1 no rank
// idles between its first and its last action. Rank r holds min(m, 2(p-r)-1) activations and min(m, 2p-1) pending
// weight gradients.
//
//   rank 0  F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4
//   rank 1  .  F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4
//
Schedule zb_h2(int ranks, int microbatches);

}  // namespace braid::schedule
