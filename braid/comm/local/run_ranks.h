// Runs ranks as threads of this process.
#pragma once

#include <functional>

#include "braid/comm/communicator.h"

namespace braid {

struct ThreadRankOptions {
  double deadline_seconds = 300;  // limit of every wait; a wait that passes it aborts the world
  // Makes rank `rank`'s queue, which the world owns; null: HostQueue.
  std::function<std::unique_ptr<Queue>(int rank)> make_queue = nullptr;
};

// Runs `body` on `num_ranks` threads, each with its own communicator of the world, and joins them. If a body throws,
// the world is aborted with its message. After all bodies have ended, the exception of the rank that failed first is
// rethrown. If num_ranks is 1, the rank runs on the calling thread.
//
// Deadlocks are detected at once. A deadlock means that every rank whose body has not returned sleeps in a wait, and so
// do all queues with a thread that have tasks, and none of these waits can end. The world is then aborted with a
// CommError that reports for each rank what it waits for. Detection is exact: it uses no clock, and never aborts while
// a message or task is under way. A rank that computes, or waits for something other than a Work or a split, does not
// count as asleep. Then only the deadline ends the waits of the others.
void run_ranks(int num_ranks, const std::function<void(Communicator& world)>& body,
               const ThreadRankOptions& options = {});

}  // namespace braid
