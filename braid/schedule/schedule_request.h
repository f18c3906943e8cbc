// What a schedule is made for.
#pragma once

namespace braid {

// Fields that a schedule does not know it ignores, but for `chunks`: a schedule with a number of its own refuses
// another.
struct ScheduleRequest {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 0;  // stages per rank; 0: the schedule's own number (2 where it may be chosen)
  // Interleaved ones: microbatches that pass a chunk before the next chunk's turn. pipedream-2bw: microbatches per
  // update. 0: chosen.
  int group = 0;
  // The searched ones order by these: times of one action on one stage and of a transfer, and what a microbatch holds
  // before (activation) and after (pending) its input-gradient pass. Any one unit each.
  double forward = 1, input_grad = 1, weight_grad = 1, transfer = 0;
  double activation = 1, pending = 0.5;
};

}  // namespace braid
