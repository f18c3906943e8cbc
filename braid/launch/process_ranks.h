// Ranks as processes of this host: the same program, forked, with a communicator over shared memory. For modules that
// use state of which a process has one, such as the default random generator: thread ranks would share it.
//
//   run_process_ranks(2, [&](Communicator& world) {
//     torch::manual_seed(world.rank());
//     ...
//     world.all_reduce(gradient, ReduceOp::Sum).wait_host();
//   });
//
// What `body` changes in memory stays in its process. It may print, write files, or reduce to rank 0.
#pragma once

#include <functional>

#include "braid/comm/communicator.h"

namespace braid {

struct ProcessRankOptions {
  double deadline_seconds = 300;  // of every wait, less time in which it is stopped; passing it aborts the world
  // Once a rank has failed the others learn it at their next wait; those that live longer than this are killed.
  double grace_seconds = 10;
  int threads_per_rank = 0;  // that LibTorch computes with; 0: an equal share of the cores, at least one
  // Makes rank `rank`'s queue, in its process; null: HostQueue.
  std::function<std::unique_ptr<Queue>(int rank)> make_queue = nullptr;
};

// Forks `num_ranks` processes, runs `body` in each with its communicator of the world, and waits for all of them. They
// leave without destructors of globals and without exit handlers; what they printed is flushed.
//
// When a body throws, the world is aborted with its message and, after all have ended, its error is thrown here: the
// same type for the errors of base/errors.h, std::runtime_error for all others. A rank that is killed or exits aborts
// the world too: a CommError with its rank. No process and no mapping is left behind, however this returns.
//
// It does not depend on the exit status of the ranks' processes: SIGCHLD may be ignored, and a handler may wait for any
// child. Where another has taken the status, a rank that neither returned nor threw is reported without how it ended.
//
// Each rank is in a process group of its own, so that a signal reaches it once, by way of the caller: SIGHUP, SIGINT,
// SIGQUIT and SIGTERM are passed on to the ranks and, when all have ended, raised here; SIGTSTP stops the ranks and the
// caller until that is continued. Ranks die with the calling thread.
//
// Throws ConfigError, and forks nothing, for more than 64 ranks and when the process runs another thread already: a
// fork would leave the locks which that thread may hold locked for ever. LibTorch starts threads with the first large
// operation, so processes come first.
void run_process_ranks(int num_ranks, const std::function<void(Communicator& world)>& body,
                       const ProcessRankOptions& options = {});

}  // namespace braid
