// The [run] section: how the ranks of a run start.
#pragma once

#include <string>

#include "braid/spec/word.h"

namespace braid {

// Ranks are threads of one process, or processes on one or more hosts.
enum class RanksAs { Threads, Processes };
constexpr auto words(RanksAs) { return std::to_array<std::string_view>({"threads", "processes"}); }

inline constexpr int kMaxProcessRanks = 64;  // per host

struct LaunchSpec {
  RanksAs ranks = RanksAs::Threads;
  int max_restarts = 3;              // number of restarts allowed after a rank was killed or hung; processes only
  double progress_seconds = 30;      // a rank without progress for this long has hung; processes only. 0: no limit
  std::string placement = "blocks";  // hosts of the ranks: blocks, or a host for each rank, "0,1,0,1"
  double heartbeat_seconds = 3;      // a host silent for this long has failed

  bool operator==(const LaunchSpec&) const = default;
};

}  // namespace braid
