// The [run] section: how the ranks of a run start.
#pragma once

#include <string>

#include "braid/spec/word.h"

namespace braid {

// Threads of one process, or processes of one host or of several.
enum class RanksAs { Threads, Processes };
constexpr auto words(RanksAs) { return std::to_array<std::string_view>({"threads", "processes"}); }

inline constexpr int kMaxProcessRanks = 64;  // of one host

struct LaunchSpec {
  RanksAs ranks = RanksAs::Threads;
  int max_restarts = 3;              // after ranks that were killed or hang; processes only
  double progress_seconds = 30;      // without a sign of progress; processes only. 0: however long
  std::string placement = "blocks";  // of ranks on hosts: blocks, or the host of each rank, "0,1,0,1"
  double heartbeat_seconds = 3;      // of silence between hosts, after which one counts as lost

  bool operator==(const LaunchSpec&) const = default;
};

}  // namespace braid
