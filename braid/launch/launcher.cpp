// The launcher of thread ranks, and the choice of a launcher.
#include "braid/launch/launcher.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "braid/base/host.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/launch/hosts_launcher.h"
#include "braid/launch/process_ranks.h"

namespace braid {
namespace {

class ThreadLauncher final : public Launcher {
 public:
  std::vector<std::string> run(int num_ranks, const Body& body, const LaunchOptions& options) const override {
    check(num_ranks > 0, "a world has at least one rank");
    std::vector<std::string> values(num_ranks);
    run_ranks(num_ranks,
              [&](Communicator& world) {
                take_threads(num_ranks, options);
                values[world.rank()] = body(world);
              },
              {options.deadline_seconds, options.make_queue});
    return values;
  }
};

}  // namespace

const Launcher& launcher(const LaunchSpec& run) {
  static const ThreadLauncher threads;
  static const ProcessLauncher processes;
  static const LoopbackLauncher over_gloo(CommEngine::Gloo), over_tcp(CommEngine::Tcp);
  switch (chosen_engine(run, 1)) {
    case CommEngine::Threads:
      return threads;
    case CommEngine::Tcp:
      return over_tcp;
    case CommEngine::Gloo:
      return over_gloo;
    case CommEngine::Shm:
      return processes;
    default:
      check(false, "the ranks of one host are not connected by MPI");
      return processes;
  }
}

void take_threads(int num_ranks, const LaunchOptions& options) {
  (void)at::get_num_threads();  // the first call fixes the thread's own count (docs/libtorch_probe.md)
  at::set_num_threads(options.threads_per_rank > 0 ? options.threads_per_rank : std::max(1, num_cores() / num_ranks));
}

}  // namespace braid
