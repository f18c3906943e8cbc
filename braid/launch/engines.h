// The functions of the communication engines, whose facts are in spec/launch_spec.h. No engine is Auto here.
#pragma once

#include <memory>
#include <string>

#include "braid/comm/communicator.h"
#include "braid/comm/world_options.h"
#include "braid/launch/launcher.h"
#include "braid/spec/launch_spec.h"

namespace braid::launch {

// Returns the launcher of ranks of one host. REQUIRES: `engine` is not Mpi.
const Launcher& launcher_of(CommEngine engine);

// Returns this process's communicator of the world. REQUIRES: `engine` is Tcp, Gloo or Mpi.
std::unique_ptr<Communicator> make_world(CommEngine engine, const comm::WorldOptions& options, Queue& queue);

// Returns the reason why this process cannot use `engine`, such as "needs libbraid_mpi_mpich.so, ..."; empty if it can.
// The job has `num_nodes` nodes with `ranks_per_node` ranks each.
std::string engine_problem(CommEngine engine, int num_nodes, int ranks_per_node);

// Returns the version of an engine, which must be equal on all nodes: "Gloo of LibTorch 2.11.0". Threads and shared
// memory have none (empty).
std::string engine_version(CommEngine engine);

}  // namespace braid::launch
