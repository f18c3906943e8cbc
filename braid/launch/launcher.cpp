// The choice of a launcher, and the threads of a rank.
#include "braid/launch/launcher.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "braid/base/host.h"
#include "braid/launch/engines.h"

namespace braid {

const Launcher& launcher(const LaunchSpec& run) { return launch::launcher_of(chosen_engine(run, 1)); }

void take_threads(int num_ranks, const LaunchOptions& options) {
  (void)at::get_num_threads();  // the first call fixes the thread's own count (docs/libtorch_probe.md)
  at::set_num_threads(options.threads_per_rank > 0 ? options.threads_per_rank : std::max(1, num_cores() / num_ranks));
}

}  // namespace braid
