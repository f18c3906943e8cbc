// The MPI plug-in of the launcher that started this process.
#pragma once

#include <string>

namespace braid::comm::mpi {

struct PluginFile {
  std::string name;     // "MPI (openmpi)"; empty without a launcher
  std::string path;     // empty if there is none, or if its file is damaged
  std::string missing;  // if `path` is empty, the reason: "must be used under mpirun ..."
};

// Returns the plug-in for the MPI whose launcher has set its variables. Looks beside the program and in ../lib/braid.
PluginFile find_plugin();

}  // namespace braid::comm::mpi
