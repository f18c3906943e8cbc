// Starting the ranks of a world: one function runs on each of them, and what it returns or throws comes home as a
// value. How ranks start is the implementation's business: as threads of this process (comm/local/run_ranks.h), as
// processes of this host (process_ranks.h) or of several (hosts_launcher.h). Nobody may rely on what a rank changes in
// memory beyond its communicator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/communicator.h"
#include "braid/base/packed.h"
#include "braid/spec/launch_spec.h"

namespace braid {

// The receiver of SIGHUP, SIGINT, SIGQUIT and SIGTERM sent to the caller of process ranks while they run. Ranks: each
// gets the signal, and the caller when all have ended. Caller: it alone, at once; ranks die with it.
enum class SignalsTo { Ranks, Caller };

// LaunchOptions::deadline_seconds of commands: ranks that fail or end are known at once, so a deadline would only end a
// run of which one rank is held up from outside (a paused terminal, a debugger, a slow disk).
inline constexpr double kNoDeadline = 1e8;

struct LaunchOptions {
  double deadline_seconds = 300;  // of every wait, less time in which a process is stopped; passing it aborts the world
  int threads_per_rank = 0;       // that LibTorch computes with; 0: an equal share of the cores, at least one
  // Makes rank `rank`'s queue, where the rank is; null: HostQueue.
  std::function<std::unique_ptr<Queue>(int rank)> make_queue = nullptr;
  // Process ranks only. When a rank has failed, the others throw at their next wait; those that live longer are killed.
  double grace_seconds = 10;
  // Process ranks only. A rank without progress for this time is killed (hang_detector.h); 0: never.
  double progress_seconds = 0;
  SignalsTo signals = SignalsTo::Ranks;  // of processes
};

class Launcher {
 public:
  using Body = std::function<std::string(Communicator& world)>;

  virtual ~Launcher() = default;

  // Runs `body` on `num_ranks` ranks, each with its communicator of the world, and returns by rank what it returned.
  // When a body throws, the world is aborted with its message and, after all ranks have ended, the error of the one
  // that failed first is thrown here: errors of base/errors.h with their type and all they carry.
  virtual std::vector<std::string> run(int num_ranks, const Body& body, const LaunchOptions& options) const = 0;
};

const Launcher& launcher(RanksAs ranks);

// Launcher::run() for a body that returns a value which packed() knows.
template <class Body>
auto values_by_rank(const Launcher& start, int num_ranks, const Body& body, const LaunchOptions& options = {}) {
  using Value = std::invoke_result_t<const Body&, Communicator&>;
  std::vector<Value> values;
  for (const auto& bytes : start.run(
           num_ranks, [&](Communicator& world) { return packed(body(world)); }, options)) {
    auto value = unpacked<Value>(bytes);
    const int rank = static_cast<int>(values.size());
    if (!value) throw CommError({"what ranks return", rank, 0, "has returned what cannot be read"});
    values.push_back(std::move(*value));
  }
  return values;
}

// For launchers, on the rank's thread: LibTorch computes with the rank's threads from here on.
void take_threads(int num_ranks, const LaunchOptions& options);

}  // namespace braid
