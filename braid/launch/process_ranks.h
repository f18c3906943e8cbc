// Launches ranks as forked processes of this host, with a communicator over shared memory. Use them for modules that
// have state per process, such as the default random generator, which thread ranks would share.
//
//   run_process_ranks(2, [&](Communicator& world) {
//     torch::manual_seed(world.rank());
//     ...
//     world.all_reduce(gradient, ReduceOp::Sum).wait_host();
//   });
//
// Changes of memory by `body` stay in its process. `body` may print, write files, or return a value (launcher.h).
#pragma once

#include <functional>

#include "braid/launch/launcher.h"

namespace braid {

// The launcher of process ranks. run() forks `num_ranks` processes, runs `body` in each with its communicator of the
// world, and waits for all of them. The processes end without destructors of globals and without exit handlers, but
// flush their output.
//
// When a body throws, run() rethrows the error, with its type if base/errors.h declares it, else as std::runtime_error.
// When a rank is killed or exits, the world is aborted, and run() throws a CommError with that rank. When run() ends,
// no process and no mapping is left behind, except a process that does not die of SIGKILL, which the error names.
//
// run() does not depend on the exit status of the processes: SIGCHLD may be ignored, and a handler may wait for any
// child. If other code has taken the status of a rank that neither returned nor threw, the error does not say how it
// ended.
//
// Each rank is in its own process group, so a signal of the terminal reaches it only through the caller.
// * SIGHUP, SIGINT, SIGQUIT and SIGTERM are passed on to the ranks, and raised in the caller when all ranks have ended.
//   With SignalsTo::Caller in `options.signals`, the ranks do not receive them.
// * SIGTSTP stops the ranks and the caller until the caller is continued.
// * The kernel kills the ranks when the calling thread ends.
//
// Throws ConfigError, and forks nothing, if there are more than 64 ranks or if the process already runs another thread.
// In the forked processes, locks held by that thread would stay locked for ever. LibTorch starts threads with its first
// large operation, so launch process ranks before that.
class ProcessLauncher final : public Launcher {
 public:
  std::vector<std::string> run(int num_ranks, const Body& body, const LaunchOptions& options) const override;
};

// Does the same for a body that returns no value.
void run_process_ranks(int num_ranks, const std::function<void(Communicator& world)>& body,
                       const LaunchOptions& options = {});

}  // namespace braid
