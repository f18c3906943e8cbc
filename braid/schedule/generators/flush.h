// Schedules of full backwards with one stage per rank and one flush per step. They hold compute actions only: transfers
// and gradient reduction are passes (passes.h). In the pictures a column is a unit of time, F takes one and B one,
// m = 4, p = 3. Any m >= 1.
#pragma once

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Plain model parallelism: a microbatch passes all stages and comes back before the next one starts, so one rank works
// at a time.
//
//   rank 0  F0 .  .  .  .  B0 F1 .  .  .  .  B1     m = 2
//   rank 1  .  F0 .  .  B0 .  .  F1 .  .  B1
//   rank 2  .  .  F0 B0 .  .  .  .  F1 B1
//
// Source: Huang et al., "GPipe" (2019), figure 2b.
Schedule naive(int ranks, int microbatches);

// Every forward, then every backward, microbatches ascending. Holds m activations on every rank.
//
//   rank 0  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3
//   rank 1  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3
//   rank 2  .  .  F0 F1 F2 F3 B0 B1 B2 B3
//
// Source: Huang et al., figure 2c; the ascending backward is PyTorch's ScheduleGPipe.
Schedule gpipe(int ranks, int microbatches);

// Rank r warms up with min(m, p-1-r) forwards, then alternates one forward and one backward, then drains.
// As long as gpipe, but rank r holds only min(m, p-r) activations.
//
//   rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
//   rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3
//   rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3
//
// Source: Narayanan et al., "PipeDream-2BW" (2021), PipeDream-Flush; warm-up of Megatron-LM's
// forward_backward_pipelining_without_interleaving.
Schedule one_f_one_b(int ranks, int microbatches);

}  // namespace braid::schedule
