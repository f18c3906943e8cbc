// Makes the communicator of ranks on several hosts, over Gloo on TCP. It exchanges tensors of the CPU. It neither
// starts ranks nor watches them.
//
// Operations move on threads of the transport while the rank computes. Ranks that all wait, so that none can continue,
// are noticed at the deadline. Everything on the connections is clear text, and peers are trusted: use them on a
// trusted network only (docs/gloo.md).
#pragma once

#include <memory>

#include "braid/comm/communicator.h"
#include "braid/comm/world_options.h"

namespace braid::comm {

// Collective: blocks until all ranks are connected to all. Throws CommError if a rank does not come, or if Gloo fails
// its test.
//
// Destroying the communicator ends the rank's part in the world. It waits until everything that the rank has issued is
// done or can never be done, and all ranks have come to their end or the world has failed. Its groups are destroyed
// before. Peers that wait for something that the rank never issued get an error that says that it has ended.
//
// With ReductionOrder::Engine, Gloo sums float32, float64 and int64 of which a rank would receive more than 64 KiB from
// all others together (of two ranks: more than 1 MiB).
std::unique_ptr<Communicator> make_gloo_world(const WorldOptions& options, Queue& queue);

}  // namespace braid::comm
