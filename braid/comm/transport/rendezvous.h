// The start of a world whose ranks find each other by a key-value store.
#pragma once

#include <functional>
#include <string>

#include "braid/comm/transport/operation.h"
#include "braid/comm/transport/progress_engine.h"
#include "braid/comm/world_options.h"

namespace braid::comm::transport {

// Returns `options.self`. REQUIRES: the options have a store and a failure state.
const RankOptions& checked_self(const WorldOptions& options);

Group world_group(const WorldOptions& options);

// Blocks until all members of `group` have called this with the same `prefix`, so that a rank that does not come is
// named. Fails the world and throws WireError at the deadline; `engine` is the name in the message, "Gloo". Throws
// WireError if given_up() returns true.
void meet(const WorldOptions& options, const Group& group, const std::string& prefix, const std::string& engine,
          const std::function<bool()>& given_up);

// Calls `connect`. If that throws a WireError, fails the world, and throws a CommError with the world's first failure
// in `operation`.
void rendezvous(const WorldOptions& options, const std::string& operation, const std::function<void()>& connect);

}  // namespace braid::comm::transport
