// The arguments of a schedule's generator.
#pragma once

namespace braid {

// A schedule ignores fields that it has no use for, except `chunks`: a schedule with a fixed number of stages per rank
// refuses any other.
struct ScheduleRequest {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 0;  // stages per rank; 0: the schedule's own number (2 where it may be chosen)
  // Interleaved ones: microbatches that pass a chunk before the next chunk's turn. pipedream-2bw: microbatches per
  // update. 0: chosen.
  int group = 0;
  // Read by the searched schedules: times of one action on one stage and of a transfer, in any one unit; and the memory
  // that a microbatch holds before (activation) and after (pending) its input-gradient pass, in any one unit.
  double forward = 1, input_grad = 1, weight_grad = 1, transfer = 0;
  double activation = 1, pending = 0.5;
};

}  // namespace braid
