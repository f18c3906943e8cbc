// Detects the launcher that started this process, and reads the variables that it has set. torchrun, mpirun, srun and
// similar launchers start a process for each rank; Kubernetes starts one for each node.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "braid/control/job_address.h"

namespace braid::control {

// The launcher of a process. `Hand` means none. `Variables` means RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which
// Kubeflow's PyTorchJob, DeepSpeed or a script sets.
enum class ProcessStarter { Hand, Torchrun, OpenMpi, Hydra, Srun, KubeflowTrainer, Variables, KubernetesJob };
enum class StartedPerRankOrNode { Rank, Node };  // the unit for which a launcher starts a process

// Several processes that were started together, according to variables that do not identify a known launcher.
struct UnclaimedProcesses {
  std::string index_name, size_name;  // names of the variables
  int size = 2;
  bool by_allocation = false;  // variables of Slurm, which sets them in a batch script (a single process) too
};

// The place that a launcher has assigned to this process. `index` and `size` count units. A value that the launcher
// does not give is nullopt.
struct LauncherEnvironment {
  ProcessStarter starter = ProcessStarter::Hand;
  std::string name;  // "torchrun"; empty for Hand
  StartedPerRankOrNode unit = StartedPerRankOrNode::Node;
  std::optional<int> index, size;  // index < size
  std::string index_name;          // name of the variable that holds the index
  std::optional<int> local_size;   // number of ranks of this node
  std::optional<JobAddress> root;  // address of node 0; port 0: the launcher gives no port
  int attempt = 0;
  std::string job;  // the launcher's job, equal in all its attempts: "srun 17"; empty: unknown
  std::optional<UnclaimedProcesses> unclaimed;  // set only for Hand and for a launcher of one process
};

// The treatment of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT without variables of a known launcher
// (ProcessStarter::Variables).
enum class PlainVariables { Read, Ignored };

// Reads the variables of the innermost of nested launchers (torchrun in srun). `full_host_name` is the name of this
// host, with its domain if it has one. In Kubernetes the name of the first pod, node 0, is derived from it.
//
// Throws ConfigError, which names the variables, in these cases:
// * They name two launchers, and neither launcher is known to start the other.
// * Some variables of a launcher are set and others are missing.
// * A number is malformed or not below its size, or an address is malformed.
LauncherEnvironment read_launcher_environment(const std::map<std::string, std::string>& variables,
                                              const std::string& full_host_name,
                                              PlainVariables plain = PlainVariables::Read);

}  // namespace braid::control
