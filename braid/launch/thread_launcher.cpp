// Each thread of a rank stores the value of its body.
#include "braid/launch/thread_launcher.h"

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"

namespace braid {

std::vector<std::string> ThreadLauncher::run(int num_ranks, const Body& body, const LaunchOptions& options) const {
  check(num_ranks > 0, "a world has at least one rank");
  std::vector<std::string> values(num_ranks);
  run_ranks(num_ranks,
            [&](Communicator& world) {
              take_threads(num_ranks, options);
              values[world.rank()] = body(world);
            },
            {.deadline_seconds = options.deadline_seconds});
  return values;
}

}  // namespace braid
