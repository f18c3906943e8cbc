// The [run] section: how the ranks of a run start.
#pragma once

#include <algorithm>
#include <string>

#include "braid/base/word.h"

namespace braid {

// Ranks are threads of one process, or processes on one or more hosts.
enum class RanksAs { Threads, Processes };
constexpr auto words(RanksAs) { return std::to_array<std::string_view>({"threads", "processes"}); }

// The library over which ranks exchange tensors. Auto: the first row of kEngineFacts that connects the ranks.
enum class CommEngine { Auto, Threads, Shm, Tcp, Gloo, Mpi };
constexpr auto words(CommEngine) {
  return std::to_array<std::string_view>({"auto", "threads", "shm", "tcp", "gloo", "mpi"});
}

// The places of a run's ranks: threads of one process, processes of one host, or processes of several hosts.
enum class RankPlaces { Threads, OneHost, SeveralHosts };

struct EngineFacts {
  CommEngine engine;
  bool threads = false, one_host = false, several_hosts = false;  // the places whose ranks it connects
  bool needs_mpirun = false;                                      // mpirun starts the ranks

  constexpr bool connects(RankPlaces places) const {
    if (places == RankPlaces::Threads) return threads;
    return places == RankPlaces::OneHost ? one_host : several_hosts;
  }
};

// All engines, in the order in which "auto" prefers them. Their functions are in launch/engines.cpp.
inline constexpr EngineFacts kEngineFacts[] = {
    {.engine = CommEngine::Threads, .threads = true},
    {.engine = CommEngine::Shm, .one_host = true},
    {.engine = CommEngine::Tcp, .one_host = true, .several_hosts = true},
    {.engine = CommEngine::Gloo, .one_host = true, .several_hosts = true},
    {.engine = CommEngine::Mpi, .one_host = true, .several_hosts = true, .needs_mpirun = true},
};

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

// Returns the places of the ranks of a run on `num_hosts` hosts. On several hosts ranks are always processes.
constexpr RankPlaces rank_places(const LaunchSpec& run, int num_hosts) {
  if (num_hosts > 1) return RankPlaces::SeveralHosts;
  return run.ranks == RanksAs::Threads ? RankPlaces::Threads : RankPlaces::OneHost;
}

// REQUIRES: `engine` is not Auto.
constexpr const EngineFacts& facts_of(CommEngine engine) {
  return *std::ranges::find(kEngineFacts, engine, &EngineFacts::engine);
}

// Returns the engine of a run on `num_nodes` nodes of a job: run.engine, or what "auto" stands for.
constexpr CommEngine chosen_engine(const LaunchSpec& run, int num_nodes) {
  if (run.engine != CommEngine::Auto) return run.engine;
  const RankPlaces places = rank_places(run, num_nodes);
  return std::ranges::find_if(kEngineFacts, [=](const EngineFacts& facts) { return facts.connects(places); })->engine;
}

}  // namespace braid
