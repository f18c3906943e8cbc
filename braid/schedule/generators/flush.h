// Schedules of full backwards with one stage per rank and one flush per step. They hold compute actions only; the
// passes in passes.h add transfers and gradient reduction. In the pictures F and B take one column each.
// There m = 4 and p = 3; any m >= 1 is valid.
#pragma once

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Returns plain model parallelism. A microbatch runs forward and backward on all stages before the next one starts, so
// one rank works at a time.
//
//   rank 0  F0 .  .  .  .  B0 F1 .  .  .  .  B1     m = 2
//   rank 1  .  F0 .  .  B0 .  .  F1 .  .  B1
//   rank 2  .  .  F0 B0 .  .  .  .  F1 B1
//
// Source: Huang et al., "GPipe" (2019), figure 2b.
Schedule naive(int ranks, int microbatches);

// Returns every forward, then every backward, with microbatches ascending. Every rank holds m activations.
//
//   rank 0  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3
//   rank 1  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3
//   rank 2  .  .  F0 F1 F2 F3 B0 B1 B2 B3
//
// Source: Huang et al., figure 2c; the ascending backward is PyTorch's ScheduleGPipe.
Schedule gpipe(int ranks, int microbatches);

// Returns 1F1B. Rank r warms up with min(m, p-1-r) forwards, then alternates one forward and one backward, then drains.
// The step takes as long as gpipe's, but rank r holds only min(m, p-r) activations.
//
//   rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
//   rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3
//   rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3
//
// Source: Narayanan et al., "PipeDream-2BW" (2021), PipeDream-Flush; warm-up of Megatron-LM's
// forward_backward_pipelining_without_interleaving.
Schedule one_f_one_b(int ranks, int microbatches);

}  // namespace braid::schedule
