// Common code of all launchers whose ranks are processes.
#pragma once

#include <functional>
#include <string>

#include "braid/comm/failure_state.h"
#include "braid/launch/launcher.h"
#include "braid/launch/rank_outcome.h"

namespace braid::launch {

// Makes the communicator of the world in the process of a rank.
using MakeWorld = std::function<std::unique_ptr<Communicator>(Queue& queue)>;

// Runs `body` as `rank` in this process. `num_ranks_here` ranks run on this host. Returns the RankOutcome. The first
// exception fails the world and becomes the outcome.
std::string run_rank(comm::FailureState& failures, int rank, int num_ranks_here, const MakeWorld& make_world,
                     const Launcher::Body& body, const LaunchOptions& options);

// Ends the process of a rank after its function: flushes its output, writes `last` to the descriptor `line`, and
// exits.
[[noreturn]] void leave_rank(int line, const std::string& last) noexcept;

// Blocks until all `bytes` are written, or until the other end accepts no more.
void write_all(int line, const std::string& bytes);

void flush_all();

// Returns the signals that the caller of a launch passes on to its ranks.
std::vector<int> relayed(SignalsTo to);

// Throws ConfigError, about "process ranks", if this process cannot fork `num_ranks` processes (process_ranks.h).
void refuse_what_cannot_fork(int num_ranks);

}  // namespace braid::launch
