// The roles of a run's ranks. The first ranks of the world are the mesh. Parameter servers that are ranks of their own
// (sync.servers_on) follow.
#pragma once

#include <type_traits>

#include "braid/comm/communicator.h"
#include "braid/comm/roster.h"
#include "braid/spec/run_spec.h"
#include "braid/sync/server/server_ranks.h"

namespace braid::train {

// The communicators of a rank of the mesh.
struct RunWorld {
  // Implicit: without servers the mesh is the whole world.
  RunWorld(Communicator& mesh, Communicator* with_servers = nullptr, comm::Roster* roster = nullptr)
      : mesh(mesh), with_servers(with_servers), roster(roster) {}

  Communicator& mesh;
  Communicator* with_servers;  // the same ranks and the servers after them; null: there are none
  comm::Roster* roster;        // of the mesh, if its ranks may be lost; otherwise null
};

// Calls `body`, which makes one Trainer, with a RunWorld on each rank of the mesh and returns its value. The other
// ranks serve this trainer until all workers have left, make `calls`, and return a default value. Collective over
// `world`, which has spec::num_world_ranks() ranks.
template <class Body>
auto on_mesh(const RunSpec& spec, Communicator& world, const Body& body,
             const sync::server::ServerRankCalls& calls = {}) {
  using Value = std::invoke_result_t<const Body&, RunWorld>;
  if (num_server_ranks(spec.sync) == 0) return body(RunWorld(world));
  const bool serves = world.rank() >= num_ranks(spec.mesh);
  const auto group = world.split(serves ? 1 : 0, world.rank(), serves ? "servers" : "mesh");
  if (!serves) return body(RunWorld(*group, &world));
  sync::server::serve(spec.sync, spec.optimizer, calls, world);
  return Value();
}

}  // namespace braid::train
