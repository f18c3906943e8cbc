// Zero-bubble schedules with one stage per rank: the backward is split in I (input gradient) and W (weight gradient),
// and W fills what would be a bubble. In the pictures every action takes one column. Any m >= 1.
// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 2 and figures 2 and 3.
#pragma once

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// ZB-V: two stages per rank in a V, so the first and the last stage are neighbours on rank 0, and memory is even.

// Rank r owns stages r and 2p-1-r. With F = I = W no rank idles between its first and its last action, and every rank
// holds at most 2p pairs: what 1F1B's first rank holds, as a stage is half as large. Any m >= 1.
//
//   rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3
//   rank 1  .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3
//
// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 6; the fixed order is PyTorch's
// ScheduleZBVZeroBubble.
Schedule zb_v(int ranks, int microbatches);

// 1F1B's warm-up of min(m, p-1-r) forwards; on rank r weight passes run r microbatches behind. Bubble (p-1)(F+I-W)
// where m >= p and W <= I; rank r holds min(m, p-r) activations and min(m, p) pending weight gradients.
//
//   rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3
//   rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
//
Schedule zb_h1(int ranks, int microbatches);

// Twice the warm-up and twice the delay. With F = I = W and m >= 2p-1 no rank idles between its first and its last
// action; the price is min(m, 2(p-r)-1) activations and min(m, 2p-1) pending weight gradients.
//
//   rank 0  F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4
//   rank 1  .  F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4
//
Schedule zb_h2(int ranks, int microbatches);

}  // namespace braid::schedule
