// Merges the states of all servers into one, and splits it again, so that a saved state does not depend on the number
// of servers.
#pragma once

#include <vector>

#include "braid/sync/server/server_shard.h"

namespace braid::sync::server {

// Returns the merged state, in new memory. Its number of steps is the lowest of the parts.
ShardState whole_state(const KeyShares& shares, const optim::ElementRule& rule, const std::vector<ShardState>& parts);
// Returns the part of one server, in new memory.
ShardState part_of_state(const KeyShares& shares, const optim::ElementRule& rule, const ShardState& whole, int server);

}  // namespace braid::sync::server
