// The store through which Gloo finds its peers, on top of a KeyValueStore.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "braid/comm/gloo/gloo_wire.h"

namespace braid::comm::gloo {

// The store waits `connect_seconds` for a key, calls on_peer() before it reads the address of a peer, and throws
// WireError if a peer does not come or given_up() returns true.
c10::intrusive_ptr<c10d::Store> peer_store(const GlooWire::Options& options);

}  // namespace braid::comm::gloo
