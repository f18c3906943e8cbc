// Launches the ranks of a world: one function runs on each rank, and the caller receives the values that it returns or
// the error that it throws. A rank is a thread of this process (comm/local/run_ranks.h), a process of this host
// (process_ranks.h) or a process of one of several hosts (hosts_launcher.h), depending on the implementation. Callers
// must not rely on changes that a rank makes in memory, except through its communicator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/packed.h"
#include "braid/comm/communicator.h"
#include "braid/comm/world_options.h"
#include "braid/spec/launch_spec.h"

namespace braid {

// The receiver of SIGHUP, SIGINT, SIGQUIT and SIGTERM that are sent to the caller of process ranks while the ranks run.
// * Ranks: each rank receives the signal at once, and the caller after all ranks have ended.
// * Caller: only the caller receives the signal, at once. If the caller dies, its ranks die too.
enum class SignalsTo { Ranks, Caller };

// The LaunchOptions::deadline_seconds of commands, in effect no deadline. Ranks that fail or end are noticed at once.
// So a deadline would only end runs in which something outside holds up a rank: a paused terminal, a debugger, a slow
// disk.
inline constexpr double kNoDeadline = 1e8;

struct LaunchOptions {
  // The deadline of every wait, not counting time in which a process is stopped. A wait that passes it aborts the
  // world.
  double deadline_seconds = 300;
  int threads_per_rank = 0;  // LibTorch threads of each rank; 0: the host's cores divided by its ranks, at least one
  // Process ranks only. After a rank has failed, the others throw at their next wait. Ranks that still run after this
  // time are killed.
  double grace_seconds = 10;
  // Process ranks only. A rank without progress for this time is killed (hang_detector.h); 0: never.
  double progress_seconds = 0;
  SignalsTo signals = SignalsTo::Ranks;  // process ranks only
  // Process ranks that are not connected by shared memory only.
  comm::ReductionOrder sums = comm::ReductionOrder::Tree;
  int ranks_per_node = 0;  // MeshSpec::ranks_per_node
};

class Launcher {
 public:
  using Body = std::function<std::string(Communicator& world)>;

  virtual ~Launcher() = default;

  // Runs `body` on `num_ranks` ranks, each with its communicator of the world. Returns the values of the bodies, by
  // rank. When a body throws, the world is aborted with its message. After all ranks have ended, run() throws the error
  // of the rank that failed first. Errors of base/errors.h keep their type and fields.
  virtual std::vector<std::string> run(int num_ranks, const Body& body, const LaunchOptions& options) const = 0;
};

// Returns the launcher of the ranks of one host.
const Launcher& launcher(const LaunchSpec& run);

// Calls Launcher::run() with a body that returns a value of a type that packed() supports. Returns the values by rank.
template <class Body>
auto values_by_rank(const Launcher& start, int num_ranks, const Body& body, const LaunchOptions& options = {}) {
  using Value = std::invoke_result_t<const Body&, Communicator&>;
  std::vector<Value> values;
  for (const auto& bytes : start.run(
           num_ranks, [&](Communicator& world) { return packed(body(world)); }, options)) {
    std::optional<Value> value = bytes.empty() ? Value() : unpacked<Value>(bytes);  // empty: the rank was lost
    const int rank = static_cast<int>(values.size());
    if (!value) throw CommError({"what ranks return", rank, 0, "has returned what cannot be read"});
    values.push_back(std::move(*value));
  }
  return values;
}

// Called by launchers on the thread of a rank: sets the number of LibTorch threads of the rank, one of `num_ranks` on
// this host, by LaunchOptions::threads_per_rank.
void take_threads(int num_ranks, const LaunchOptions& options);

}  // namespace braid
