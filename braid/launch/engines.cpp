// The table of the functions of engines.
#include "braid/launch/engines.h"

#include <torch/headeronly/version.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/gloo/make_gloo_world.h"
#include "braid/comm/mpi/make_mpi_world.h"
#include "braid/comm/mpi/mpi_plugin_file.h"
#include "braid/comm/tcp/make_tcp_world.h"
#include "braid/launch/hosts_launcher.h"
#include "braid/launch/process_ranks.h"
#include "braid/launch/thread_launcher.h"

namespace braid::launch {
namespace {

struct EngineFunctions {
  CommEngine engine;
  // Returns the launcher of the ranks of one host. Null if this process cannot start them.
  const Launcher& (*launcher)() = nullptr;
  // Ranks that find each other through a key-value store only.
  std::unique_ptr<Communicator> (*make_world)(const comm::WorldOptions&, Queue&) = nullptr;
  // Null: there is no problem.
  std::string (*problem)(int num_nodes, int ranks_per_node) = nullptr;
  std::string (*version)() = [] { return std::string(); };
};

template <class OfHost>
const Launcher& only() {
  static const OfHost launcher;
  return launcher;
}

template <CommEngine engine>
const Launcher& over_loopback() {
  static const LoopbackLauncher launcher(engine);
  return launcher;
}

std::string mpi_problem(int num_nodes, int ranks_per_node) {
  if (num_nodes == 1) return "must be used under mpirun, which starts the ranks, at least two";
  if (ranks_per_node != 1) return "must have one rank for each process that mpirun starts";
  return comm::mpi::find_plugin().missing;
}

// In the order of kEngineFacts (spec/launch_spec.h), which says where the ranks of each may be.
constexpr EngineFunctions kEngines[] = {
    {.engine = CommEngine::Threads, .launcher = only<ThreadLauncher>},
    {.engine = CommEngine::Shm, .launcher = only<ProcessLauncher>},
    {.engine = CommEngine::Tcp,
     .launcher = over_loopback<CommEngine::Tcp>,
     .make_world = comm::make_tcp_world,
     .version = [] { return cat("TCP and LibTorch ", TORCH_VERSION); }},
    {.engine = CommEngine::Gloo,
     .launcher = over_loopback<CommEngine::Gloo>,
     .make_world = comm::make_gloo_world,
     .version = [] { return cat("Gloo of LibTorch ", TORCH_VERSION); }},
    {.engine = CommEngine::Mpi,
     .make_world = comm::make_mpi_world,
     .problem = mpi_problem,
     .version = [] { return std::string(comm::mpi::find_plugin().name); }},
};
static_assert(std::ranges::equal(kEngines, kEngineFacts, {}, &EngineFunctions::engine, &EngineFacts::engine));

const EngineFunctions& functions_of(CommEngine engine) {
  return *std::ranges::find(kEngines, engine, &EngineFunctions::engine);
}

}  // namespace

const Launcher& launcher_of(CommEngine engine) {
  const EngineFunctions& functions = functions_of(engine);
  check(functions.launcher, "the ranks of one host are not connected by MPI");
  return functions.launcher();
}

std::unique_ptr<Communicator> make_world(CommEngine engine, const comm::WorldOptions& options, Queue& queue) {
  const EngineFunctions& functions = functions_of(engine);
  check(functions.make_world, "ranks that find each other by a store are connected by TCP, Gloo or MPI");
  return functions.make_world(options, queue);
}

std::string engine_problem(CommEngine engine, int num_nodes, int ranks_per_node) {
  const EngineFunctions& functions = functions_of(engine);
  return functions.problem ? functions.problem(num_nodes, ranks_per_node) : "";
}

std::string engine_version(CommEngine engine) { return functions_of(engine).version(); }

}  // namespace braid::launch
