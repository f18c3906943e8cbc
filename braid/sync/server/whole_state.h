// Merges the states of all servers into one, and splits it again, so that a saved state does not depend on the number
// of servers.
#pragma once

#include <vector>

#include "braid/sync/server/server_shard.h"

namespace braid::sync::server {

// Copies the part of one server into the tensors of `whole`, whose number of steps becomes that of the part if that is
// lower.
void add_part(const KeyShares& shares, int server, const ShardState& part, ShardState& whole);
// Returns the part of one server, in new memory.
ShardState part_of_state(const KeyShares& shares, const optim::ElementRule& rule, const ShardState& whole, int server);

}  // namespace braid::sync::server
