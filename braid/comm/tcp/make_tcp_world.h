// Makes the communicator of ranks on several hosts over TCP sockets of braid's own. It exchanges tensors of the CPU,
// with the sums of communicator.h.
//
// Each connection begins with a secret that the listening rank has published in the store, so an unauthenticated peer
// cannot take a rank's place. The bytes after it are clear text: use it on a trusted network only.
#pragma once

#include <memory>

#include "braid/comm/communicator.h"
#include "braid/comm/world_options.h"

namespace braid::comm {

// Collective: blocks until all ranks are connected to all. Throws CommError if a rank does not connect. `sums` of the
// options has no effect. Destroying the communicator ends the rank's part in the world, as with make_gloo_world().
std::unique_ptr<Communicator> make_tcp_world(const WorldOptions& options, Queue& queue);

}  // namespace braid::comm
