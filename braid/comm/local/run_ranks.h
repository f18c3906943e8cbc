// Ranks as threads of this process.
#pragma once

#include <functional>

#include "braid/comm/communicator.h"

namespace braid {

struct ThreadRankOptions {
  double deadline_seconds = 300;  // of every wait; a wait that passes it aborts the world
  // Makes rank `rank`'s queue; null: HostQueue. Owned by the world.
  std::function<std::unique_ptr<Queue>(int rank)> make_queue = nullptr;
};

// Runs `body` on `num_ranks` threads, each with its own communicator of the world, and joins them. When a body throws,
// the world is aborted with its message and, after all have ended, the exception of the rank that failed first is
// rethrown. One rank runs on the calling thread when num_ranks is 1.
//
// When every rank whose body has not returned sleeps in a wait (or, with queues that have a thread, its queue does as
// well) and none of these waits can end any more, the world is aborted at once with a CommError that says, rank by
// rank, what each waits for. This is exact: it never happens while a message or task is under way, and no clock
// decides. A rank that computes, or waits for something that is not a Work or a split, does not count as asleep; then
// only the deadline ends the waits of the others.
void run_ranks(int num_ranks, const std::function<void(Communicator& world)>& body,
               const ThreadRankOptions& options = {});

}  // namespace braid
