// What run.placement says: which host has which rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

inline constexpr const char* kPlacedInBlocks = "blocks";

// Of ranks that are dealt out in blocks the most that one of the hosts has.
inline int most_ranks_of_host(int64_t num_ranks, int num_hosts) {
  return static_cast<int>((num_ranks + num_hosts - 1) / num_hosts);
}

// By rank, of a list with commas between the numbers of hosts. Empty where it is none of `num_ranks` hosts, 0 the
// first, of which each of `num_hosts` is named.
std::vector<int> listed_hosts(const std::string& placement, int num_ranks, int num_hosts);

}  // namespace braid
