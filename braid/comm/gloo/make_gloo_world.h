// Makes the communicator of ranks on several hosts, over Gloo on TCP. It exchanges tensors of the CPU. It neither
// starts ranks nor watches them.
//
// Threads of the transport execute operations while the rank computes. A deadlock of all ranks ends at the deadline.
// Everything on the connections is clear text, and peers are trusted: use them on a trusted network only
// (docs/gloo.md).
#pragma once

#include <memory>

#include "braid/comm/communicator.h"
#include "braid/comm/world_options.h"

namespace braid::comm {

// Collective: blocks until all ranks are connected to all. Throws CommError if a rank does not connect, or if Gloo
// fails its test.
//
// Destroying the communicator ends the rank's part in the world. The destructor waits until all operations of the rank
// are done or can never be done. Then it waits until all ranks end their part, or the world has failed. Destroy the
// rank's groups first. Peers that wait for an operation that the rank never issued get an error: the rank has ended.
//
// With ReductionOrder::Measured and ReductionOrder::Engine, Gloo makes sums of float32, float64 and int64 tensors, from
// a measured size on (transport/own_sums.h) or of all sizes.
std::unique_ptr<Communicator> make_gloo_world(const WorldOptions& options, Queue& queue);

}  // namespace braid::comm
