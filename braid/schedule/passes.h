// Passes from schedule to schedule. They never reorder compute actions. When several apply, the order is
// split_backward, with_grad_sync, with_comms: so a gradient leaves before the weight pass and the reduction begin.
#pragma once

#include "braid/schedule/schedule.h"

namespace braid {

// Adds the transfers between neighbouring stages on different ranks: a send right after the action that makes the
// tensor, the receive right before the action that needs it. (PyTorch's _add_send_recv uses the same notation but moves
// the receive up to where its send runs.)
//
//   rank 0  0F0 0SEND_F0 0RECV_B0 0B0
//   rank 1  1RECV_F0 1F0 1B0 1SEND_B0
//
// A schedule that has transfers already comes back as it is.
Schedule with_comms(const Schedule& schedule);

// Adds REDUCE_GRAD of a stage right after the last action that adds to its weight gradients (B or W).
// A schedule that has it already comes back as it is. Source: PyTorch's _add_reduce_grad.
Schedule with_grad_sync(const Schedule& schedule);

// Replaces every B by I and W. Apply before with_comms, so that the send stands between them.
Schedule split_backward(const Schedule& schedule);

// True when the schedule has at least one send or receive.
bool has_comms(const Schedule& schedule);

}  // namespace braid
