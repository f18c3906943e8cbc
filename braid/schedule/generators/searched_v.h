// V-Half and V-Min: two stages per rank in a V. The order is built from a repeated pattern and needs half, or a third,
// of 1F1B's activation memory. It depends only on ranks and microbatches. Any m >= 1 is valid. Source: Qi et al.,
// "Pipeline Parallelism with Controllable Memory" (2024), section 3 and appendix.
#pragma once

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Returns V-Half. No rank holds more than 2 floor((p+2)/2) (stage, microbatch) pairs; 1F1B's first rank holds the
// memory of 2p such pairs.
//
//   rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 .   0I0 3I1 3W1 3F2 0W0 0F3 0I1 3I2 3W2 3F3 3I3 0I2 3W3 0I3 0W1 0W2 0W3
//   rank 1  .   1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 1F2 2F2 2I1 1I1 2W1 1F3 1W1 2F3 2I2 1I2 2I3 1I3 2W2 2W3 1W2 1W3
//
Schedule v_half(int ranks, int microbatches);

// Returns V-Min. No rank holds more than 2 floor((p+4)/3) pairs. The bubble grows with m if F, I and W differ.
//
//   rank 0  0F0 0F1 .   3F0 3I0 3W0 .   0I0 0W0 3F1 3I1 3W1 0F2 0I1 0W1 3F2 3I2 3W2 0F3 0I2 0W2 3F3 3I3 3W3 .   0I3 0W3
//   rank 1  .   1F0 2F0 .   .   2I0 1I0 1F1 2F1 2W0 1W0 2I1 1I1 1F2 2F2 2W1 1W1 2I2 1I2 1F3 2F3 2W2 1W2 2I3 1I3 2W3 1W3
//
Schedule v_min(int ranks, int microbatches);

}  // namespace braid::schedule
