// The engines over which process ranks that find each other by a key-value store exchange tensors.
#pragma once

#include <memory>
#include <string>

#include "braid/comm/communicator.h"
#include "braid/comm/world_options.h"
#include "braid/spec/launch_spec.h"

namespace braid::launch {

// REQUIRES: `engine` is Tcp, Gloo or Mpi.
std::unique_ptr<Communicator> make_world(CommEngine engine, const comm::WorldOptions& options, Queue& queue);

// Returns a rule that is broken if this process cannot use `engine`, "needs libbraid_mpi_mpich.so, ..."; empty if it
// can. `num_nodes` nodes are in the job, and `ranks_per_node` ranks on each.
std::string engine_problem(CommEngine engine, int num_nodes, int ranks_per_node);

// Returns the version of an engine, which must be equal on all nodes: "Gloo of LibTorch 2.11.0"; empty if braid is part
// of it.
std::string engine_version(CommEngine engine);

}  // namespace braid::launch
