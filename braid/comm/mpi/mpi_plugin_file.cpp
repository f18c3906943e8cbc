// The variables of launchers, and the places of plug-ins.
#include "braid/comm/mpi/mpi_plugin_file.h"

#include <cstdlib>
#include <filesystem>

#include "braid/base/library_file.h"
#include "braid/base/text.h"

namespace braid::comm::mpi {

PluginFile find_plugin() {
  struct Implementation {
    const char *variable, *name, *package;
  };
  constexpr Implementation kImplementations[] = {{"OMPI_COMM_WORLD_SIZE", "openmpi", "libopenmpi-dev"},
                                                 {"PMI_SIZE", "mpich", "libmpich-dev"}};
  for (const auto& [variable, name, package] : kImplementations) {
    if (!std::getenv(variable)) continue;
    std::error_code failure;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
    const std::string shown = cat("MPI (", name, ")"), file = cat("libbraid_mpi_", name, ".so");
    for (const auto& folder : {program, program / "../lib/braid"}) {
      const std::string path = (folder / file).lexically_normal().string();
      if (!std::filesystem::exists(path, failure)) continue;
      const std::string fault = library_fault(path);
      if (fault.empty()) return {shown, path, ""};
      return {shown, "", cat("cannot be used: ", printable(path, 4096), " ", fault, "; build or install it again")};
    }
    return {shown, "",
            cat("needs ", file, ", which is built where Debian's package ", package,
                " is installed (scripts/setup --mpi)")};
  }
  return {"", "", "must be used under mpirun of Open MPI or MPICH, which starts one process for each rank"};
}

}  // namespace braid::comm::mpi
