// The [run] section: how the ranks of a run start.
#pragma once

#include "braid/spec/word.h"

namespace braid {

// Threads of one process, or processes of one host.
enum class RanksAs { Threads, Processes };
constexpr auto words(RanksAs) { return std::to_array<std::string_view>({"threads", "processes"}); }

inline constexpr int kMaxProcessRanks = 64;  // of one world

struct LaunchSpec {
  RanksAs ranks = RanksAs::Threads;

  bool operator==(const LaunchSpec&) const = default;
};

}  // namespace braid
