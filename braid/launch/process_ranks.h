// Ranks as processes of this host: the same program, forked, with a communicator over shared memory. For modules that
// use state of which a process has one, such as the default random generator: thread ranks would share it.
//
//   run_process_ranks(2, [&](Communicator& world) {
//     torch::manual_seed(world.rank());
//     ...
//     world.all_reduce(gradient, ReduceOp::Sum).wait_host();
//   });
//
// What `body` changes in memory stays in its process. It may print, write files, or return a value (launcher.h).
#pragma once

#include <functional>

#include "braid/launch/launcher.h"

namespace braid {

// Forks `num_ranks` processes, runs `body` in each with its communicator of the world, and waits for all of them. They
// leave without destructors of globals and without exit handlers; what they printed is flushed.
//
// When a body throws, its error is thrown here, with its type for the errors of base/errors.h and as std::runtime_error
// for all others. A rank that is killed or exits aborts the world too: a CommError with its rank. No process and no
// mapping is left behind, however this returns.
//
// It does not depend on the exit status of the ranks' processes: SIGCHLD may be ignored, and a handler may wait for any
// child. Where another has taken the status, a rank that neither returned nor threw is reported without how it ended.
//
// Each rank is in a process group of its own, so that a signal reaches it once, by way of the caller: SIGHUP, SIGINT,
// SIGQUIT and SIGTERM are passed on to the ranks and, when all have ended, raised here, unless `options.signals` leaves
// them to the caller; SIGTSTP stops the ranks and the caller until that is continued. Ranks die with the calling
// thread.
//
// Throws ConfigError, and forks nothing, for more than 64 ranks and when the process runs another thread already: a
// fork would leave the locks which that thread may hold locked for ever. LibTorch starts threads with the first large
// operation, so processes come first.
class ProcessLauncher final : public Launcher {
 public:
  std::vector<std::string> run(int num_ranks, const Body& body, const LaunchOptions& options) const override;
};

// The same for a body that brings nothing home.
void run_process_ranks(int num_ranks, const std::function<void(Communicator& world)>& body,
                       const LaunchOptions& options = {});

}  // namespace braid
