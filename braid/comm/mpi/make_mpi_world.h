// Makes the communicator of ranks that mpirun has started, over MPI. It exchanges tensors of the CPU, with the sums of
// communicator.h.
#pragma once

#include <memory>

#include "braid/comm/communicator.h"
#include "braid/comm/world_options.h"

namespace braid::comm {

// Collective: blocks until all ranks have initialised MPI, once per process. Throws CommError if a rank does not join.
// `address` and `sums` of the options have no effect. Destroying the communicator ends the rank's part in the world, as
// with make_gloo_world(), and MPI, unless the world has failed.
std::unique_ptr<Communicator> make_mpi_world(const WorldOptions& options, Queue& queue);

}  // namespace braid::comm
