// How far the ranks get into a step while the gradients of the step before must stay as they are, and which messages
// are then under way. Pure: it follows from the schedule alone, so all ranks know it of each other without asking.
#pragma once

#include <vector>

#include "braid/schedule/schedule.h"

namespace braid {

struct RunAhead {
  std::vector<int> until;           // per rank: actions before this index of its program
  std::vector<Program> unreceived;  // per rank: its receives from `until` on whose send is before the sender's `until`
};

// The longest beginning of every program in which no action writes a gradient and every receive has its send, on
// buffered sends. Backward passes of all kinds, reductions and updates write gradients; so do forwards of the last
// stage, whose loss may make its weight gradients at once (nn/language_head.h). `schedule` has its transfers.
//
//   rank 0  0F0 0SEND_F0 0F1 0SEND_F1 | 0RECV_B0 0B0 ...       until = 4
//   rank 1  1RECV_F0 | 1F0 1B0 1SEND_B0 1RECV_F1 ...           until = 1, unreceived = {1RECV_F1}
RunAhead run_ahead(const Schedule& schedule);

}  // namespace braid
