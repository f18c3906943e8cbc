// What run.placement says: which host has which rank.
#pragma once

#include <string>
#include <vector>

namespace braid {

inline constexpr const char* kPlacedInBlocks = "blocks";

// By rank, of a list with commas between the numbers of hosts. Empty where it is none of `num_ranks` hosts, 0 the
// first, of which each of `num_hosts` is named.
std::vector<int> listed_hosts(const std::string& placement, int num_ranks, int num_hosts);

}  // namespace braid
