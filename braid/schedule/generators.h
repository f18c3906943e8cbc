// Pipeline schedules as pure functions of (ranks, microbatches). They hold compute actions only: transfers and gradient
// reduction are passes (passes.h). In the pictures a column is a unit of time, F takes one and B one, m = 4, p = 3.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/schedule/schedule.h"

namespace braid {

// Every forward, then every backward, microbatches ascending. Holds m activations on every rank.
//
//   rank 0  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3
//   rank 1  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3
//   rank 2  .  .  F0 F1 F2 F3 B0 B1 B2 B3
//
// Source: Huang et al., "GPipe" (2019), figure 2; the ascending backward is PyTorch's ScheduleGPipe. Any m >= 1.
Schedule gpipe(int ranks, int microbatches);

// Rank r warms up with min(m, p-1-r) forwards, then alternates one forward and one backward, then drains.
// As long as gpipe, but rank r holds only min(m, p-r) activations.
//
//   rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
//   rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3
//   rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3
//
// Source: Narayanan et al., "PipeDream-2BW" (2021), PipeDream-Flush; warm-up of Megatron-LM's
// forward_backward_pipelining_without_interleaving. Any m >= 1.
Schedule one_f_one_b(int ranks, int microbatches);

// What a schedule is made for. Fields that a schedule does not know it ignores.
struct ScheduleRequest {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 0;  // stages per rank; 0: the schedule's own number (2 where it may be chosen)
  int group = 0;   // interleaved ones: microbatches that pass a chunk before the next chunk's turn; 0: chosen
  // The searched ones order by these: times of one action on one stage and of a transfer, and what a microbatch holds
  // before (activation) and after (pending) its input-gradient pass. Any one unit each.
  double forward = 1, input_grad = 1, weight_grad = 1, transfer = 0;
  double activation = 1, pending = 0.5;
};

// The schedule of that name. Throws ConfigError with every fault: an unknown name (with the nearest), ranks or
// microbatches below 1, a condition of the schedule.
Schedule make_schedule(std::string_view name, const ScheduleRequest& request);

// Every name that make_schedule takes, in the order of the table.
std::vector<std::string> schedule_names();

}  // namespace braid
