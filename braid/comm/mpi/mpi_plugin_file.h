// The MPI plug-in of the launcher that started this process.
#pragma once

#include <string>

namespace braid::comm::mpi {

struct PluginFile {
  std::string name;     // "MPI (openmpi)"; empty without a launcher
  std::string path;     // empty if there is none
  std::string missing;  // if there is none, the reason: "must be used under mpirun ..."
};

// Finds the plug-in beside the program, or in ../lib/braid, by the variables of the launcher.
PluginFile find_plugin();

}  // namespace braid::comm::mpi
