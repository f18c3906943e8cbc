// Which program started this process, and what it said in environment variables: torchrun, mpirun, srun and the like
// start every rank, Kubernetes every node.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "braid/control/job_address.h"

namespace braid::control {

// Variables: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, by Kubeflow's PyTorchJob, DeepSpeed or a script.
enum class ProcessStarter { Hand, Torchrun, OpenMpi, Hydra, Srun, KubeflowTrainer, Variables, KubernetesJob };
enum class StartedPerRankOrNode { Rank, Node };  // what each process is

// Several processes that were started together, as variables say that no launcher below is known by.
struct UnclaimedProcesses {
  std::string index_name, size_name;  // the variables
  int size = 2;
  bool by_allocation = false;  // Slurm says it to the script of an allocation too, which is one process
};

// `index`, `size`: of the unit. What the launcher does not say is nothing.
struct LauncherEnvironment {
  ProcessStarter starter = ProcessStarter::Hand;
  std::string name;  // "torchrun"; empty for Hand
  StartedPerRankOrNode unit = StartedPerRankOrNode::Node;
  std::optional<int> index, size;  // index < size
  std::string index_name;          // the variable that says the index
  std::optional<int> local_size;   // ranks of this node
  std::optional<JobAddress> root;  // a port of 0: the launcher has named none
  int attempt = 0;
  std::string job;  // "srun 17": which of the launcher's this is an attempt of; empty: it does not say
  std::optional<UnclaimedProcesses> unclaimed;  // for Hand, and for a launcher of one process
};

// Variables without a launcher's own mark: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
enum class PlainVariables { Read, Ignored };

// Reads the innermost of nested launchers (torchrun in srun). `full_host_name` is this host's, with its domain where it
// has one: from it Kubernetes' pods know the first of them.
//
// Throws ConfigError that names the variables: two launchers neither of which is known to start the other, some of a
// launcher's variables without the others, numbers that are none or not below their size, addresses that are none.
LauncherEnvironment read_launcher_environment(const std::map<std::string, std::string>& variables,
                                              const std::string& full_host_name,
                                              PlainVariables plain = PlainVariables::Read);

}  // namespace braid::control
