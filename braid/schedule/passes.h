// Passes from schedule to schedule. They never reorder compute actions, and they never split a fused pair: receives for
// either of its actions come before the pair, sends after it. Apply several passes in the order with_backwards,
// with_unshard, with_grad_sync, with_comms, with_recompute. A gradient is then sent before the weight pass and the
// reduction begin, and a stage's parameters are gathered before the rank waits for a tensor.
#pragma once

#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Leaves out the passes that stages do not need, with their transfers and reductions. A B of a stage with
// StageBackward::InputOnly becomes an I without a W. A pair whose backward is left out becomes a single F. `backwards`
// is by stage; Nothing is for the first stages alone.
//
//   stage 0 Nothing, stage 2 InputOnly    rank 0  0F0 0F1
//                                         rank 1  1F0 1F1 1B0 1B1
//                                         rank 2  2F0 2I0 2F1 2I1
Schedule with_backwards(const Schedule& schedule, const std::vector<StageBackward>& backwards);

// Adds the transfers between neighbouring stages on different ranks: each send right after the action that produces the
// tensor, each receive right before the action that needs it.
//
//   rank 0  0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
//   rank 1  1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1
//
// Returns a schedule that already has transfers unchanged.
Schedule with_comms(const Schedule& schedule);

// Adds REDUCE_GRAD of a stage right after the last action that adds to its weight gradients (B or W), on each rank that
// has a copy of the stage. A stage without weight gradients has none. Returns a schedule that already has REDUCE_GRAD
// unchanged, and also an asynchronous one, whose UPDATE marks when gradients are complete. Source: PyTorch's
// _add_reduce_grad.
Schedule with_grad_sync(const Schedule& schedule);

// Adds UNSHARD and RESHARD for parameters that are sharded between steps. Before each action that needs parameters, a
// rank frees the stages that are not among the next `most_stages` it will run, then gathers those that are. At the end
// it frees the rest. Returns a schedule that already has either unchanged. Source: PyTorch's _add_unshard_reshard.
//
//   rank 0  0UNSHARD 1UNSHARD 0F0 1F0 1B0 1RESHARD 0B0 0RESHARD
Schedule with_unshard(const Schedule& schedule, int most_stages = 3);

// Adds RECOMPUTE before every backward (B or I) of the stages listed. It comes right before the backward, or before the
// fused pair that has it. If only receives separate the gradient's receive from the backward, RECOMPUTE comes right
// before that receive, so that recomputation and transfer overlap.
Schedule with_recompute(const Schedule& schedule, const std::vector<int>& stages);

// Returns a schedule of forwards only, with their transfers, on the stages and ranks of `schedule`. The number of
// microbatches may differ from the schedule's. Stage s runs microbatch m of its direction in round s + m.
//
//   rank 0  0F0 0SEND_F0 0F1 0SEND_F1
//   rank 1  1RECV_F0 1F0 1RECV_F1 1F1
Schedule forward_only(const Schedule& schedule, int num_microbatches);

// Returns true if the stage gives the gradient of its input to the stage before it.
bool passes_gradient(const Schedule& schedule, int stage);

// Returns true if the schedule has at least one send or receive.
bool has_comms(const Schedule& schedule);

}  // namespace braid::schedule
