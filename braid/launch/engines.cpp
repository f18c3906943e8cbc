// The table of engines.
#include "braid/launch/engines.h"

#include <torch/headeronly/version.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/gloo/make_gloo_world.h"
#include "braid/comm/mpi/make_mpi_world.h"
#include "braid/comm/mpi/mpi_plugin_file.h"
#include "braid/comm/tcp/make_tcp_world.h"

namespace braid::launch {
namespace {

struct EngineEntry {
  CommEngine engine;
  std::unique_ptr<Communicator> (*make_world)(const comm::WorldOptions&, Queue&);
  std::string (*problem)(int num_nodes, int ranks_per_node);
  std::string (*version)();
};

constexpr EngineEntry kEngines[] = {
    {CommEngine::Tcp, comm::make_tcp_world, [](int, int) { return std::string(); },
     [] { return cat("TCP and LibTorch ", TORCH_VERSION); }},
    {CommEngine::Gloo, comm::make_gloo_world, [](int, int) { return std::string(); },
     [] { return cat("Gloo of LibTorch ", TORCH_VERSION); }},
    {CommEngine::Mpi, comm::make_mpi_world,
     [](int num_nodes, int ranks_per_node) -> std::string {
       if (num_nodes == 1) return "must be used under mpirun, which starts the ranks, at least two";
       if (ranks_per_node != 1) return "must have one rank for each process that mpirun starts";
       return comm::mpi::find_plugin().missing;
     },
     [] { return std::string(comm::mpi::find_plugin().name); }},
};

const EngineEntry* entry_of(CommEngine engine) {
  for (const EngineEntry& entry : kEngines) {
    if (entry.engine == engine) return &entry;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Communicator> make_world(CommEngine engine, const comm::WorldOptions& options, Queue& queue) {
  const EngineEntry* const entry = entry_of(engine);
  check(entry, "ranks that find each other by a store are connected by TCP, Gloo or MPI");
  return entry->make_world(options, queue);
}

std::string engine_problem(CommEngine engine, int num_nodes, int ranks_per_node) {
  const EngineEntry* const entry = entry_of(engine);
  return entry ? entry->problem(num_nodes, ranks_per_node) : "";
}

std::string engine_version(CommEngine engine) {
  const EngineEntry* const entry = entry_of(engine);
  return entry ? entry->version() : "";
}

}  // namespace braid::launch
