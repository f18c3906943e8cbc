// Passes from schedule to schedule. They never reorder compute actions, and a fused pair stays one: what either of its
// actions needs comes before it, what either makes leaves after it. When several apply, the order is with_unshard,
// with_grad_sync, with_comms, with_recompute: so a gradient leaves before the weight pass and the reduction begin, and
// a stage's parameters come before it waits for a tensor.
#pragma once

#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Adds the transfers between neighbouring stages on different ranks: a send right after the action that makes the
// tensor, the receive right before the action that needs it.
//
//   rank 0  0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
//   rank 1  1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1
//
// A schedule that has transfers already comes back as it is.
Schedule with_comms(const Schedule& schedule);

// Adds REDUCE_GRAD of a stage right after the last action that adds to its weight gradients (B or W), on each rank that
// has a copy of it. A schedule that has it already comes back as it is, and so does an asynchronous one: there UPDATE
// says when gradients are complete. Source: PyTorch's _add_reduce_grad.
Schedule with_grad_sync(const Schedule& schedule);

// Adds UNSHARD and RESHARD for parameters that are sharded between steps: before each action that needs parameters, a
// rank frees stages that are not among the next `most_stages` it will run, then gathers those that are; in the end it
// frees the rest. A schedule that has them already comes back as it is. Source: PyTorch's _add_unshard_reshard.
//
//   rank 0  0UNSHARD 1UNSHARD 0F0 1F0 1B0 1RESHARD 0B0 0RESHARD
Schedule with_unshard(const Schedule& schedule, int most_stages = 3);

// Adds RECOMPUTE to every backward of the stages listed: right before the receive of the gradient where that stands
// right before the backward, so that work and transfer overlap, else right before the backward (or the pair it is in).
Schedule with_recompute(const Schedule& schedule, const std::vector<int>& stages);

// The forwards alone, of any number of microbatches on the stages and ranks of the schedule, with their transfers:
// stage s has microbatch m of its direction in round s + m.
//
//   rank 0  0F0 0SEND_F0 0F1 0SEND_F1
//   rank 1  1RECV_F0 1F0 1RECV_F1 1F1
Schedule forward_only(const Schedule& schedule, int num_microbatches);

// True when the schedule has at least one send or receive.
bool has_comms(const Schedule& schedule);

}  // namespace braid::schedule
