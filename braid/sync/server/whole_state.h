// The state of all servers as that of one, and the other way: what is saved does not depend on how many there were.
#pragma once

#include <vector>

#include "braid/sync/server/server_shard.h"

namespace braid::sync::server {

// In memory of its own. The parts agree in their number of steps.
ShardState whole_state(const KeyShares& shares, const optim::ElementRule& rule, const std::vector<ShardState>& parts);
// In memory of its own.
ShardState part_of_state(const KeyShares& shares, const optim::ElementRule& rule, const ShardState& whole, int server);

}  // namespace braid::sync::server
