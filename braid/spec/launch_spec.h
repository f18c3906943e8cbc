// The [run] section: how the ranks of a run start.
#pragma once

#include <string>

#include "braid/base/word.h"

namespace braid {

// Ranks are threads of one process, or processes on one or more hosts.
enum class RanksAs { Threads, Processes };
constexpr auto words(RanksAs) { return std::to_array<std::string_view>({"threads", "processes"}); }

// The library over which ranks exchange tensors. Auto: threads for threads, shm for processes of one host, tcp for
// several hosts.
enum class CommEngine { Auto, Threads, Shm, Tcp, Gloo, Mpi };
constexpr auto words(CommEngine) {
  return std::to_array<std::string_view>({"auto", "threads", "shm", "tcp", "gloo", "mpi"});
}

inline constexpr int kMaxProcessRanks = 64;  // per host

struct LaunchSpec {
  RanksAs ranks = RanksAs::Threads;
  CommEngine engine = CommEngine::Auto;
  int max_restarts = 3;              // number of restarts allowed after a rank was killed or hung; processes only
  double progress_seconds = 30;      // a rank without progress for this long has hung; processes only. 0: no limit
  std::string placement = "blocks";  // hosts of the ranks: blocks, or a host for each rank, "0,1,0,1"
  double heartbeat_seconds = 3;      // a host silent for this long has failed

  bool operator==(const LaunchSpec&) const = default;
};

// Returns the engine of a run on `num_nodes` nodes of a job: run.engine, or what "auto" stands for.
constexpr CommEngine chosen_engine(const LaunchSpec& run, int num_nodes) {
  if (run.engine != CommEngine::Auto) return run.engine;
  if (num_nodes > 1) return CommEngine::Tcp;
  return run.ranks == RanksAs::Threads ? CommEngine::Threads : CommEngine::Shm;
}

}  // namespace braid
