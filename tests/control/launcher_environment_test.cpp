// The variables of each launcher, as found in processes that it started, and malformed ones.
#include "braid/control/launcher_environment.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::control::launcher_environment_test {
namespace {

using Variables = std::map<std::string, std::string>;

std::string number(std::optional<int> value) { return value ? cat(*value) : "-"; }

// "torchrun rank 1/4 local 2 root h0:29501 attempt 2 of torchrun none"
std::string text(const LauncherEnvironment& found) {
  if (found.starter == ProcessStarter::Hand) return "by hand";
  return cat(found.name, found.unit == StartedPerRankOrNode::Rank ? " rank " : " node ", number(found.index), "/",
             number(found.size), " local ", number(found.local_size), " root ", found.root ? text(*found.root) : "-",
             " attempt ", found.attempt, found.job.empty() ? "" : " of " + found.job);
}

const Variables kTorchrun{
    {"TORCHELASTIC_RUN_ID", "none"},    {"RANK", "1"},       {"WORLD_SIZE", "4"},   {"LOCAL_RANK", "1"},
    {"LOCAL_WORLD_SIZE", "2"},          {"GROUP_RANK", "0"}, {"MASTER_ADDR", "h0"}, {"MASTER_PORT", "29500"},
    {"TORCHELASTIC_RESTART_COUNT", "2"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables kHydra{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}};
const Variables kSrun{{"SLURM_PROCID", "4"},
                      {"SLURM_NTASKS", "7"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NODEID", "2"},
                      {"SLURM_STEP_NODELIST", "n[03-05,9],k1"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}};
const Variables kTrainer{{"PET_NNODES", "2"},
                         {"PET_NODE_RANK", "1"},
                         {"PET_NPROC_PER_NODE", "8"},
                         {"PET_MASTER_ADDR", "train-node-0-0.train"},
                         {"PET_MASTER_PORT", "29400"}};
const Variables kPlain{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "h0"}, {"MASTER_PORT", "29500"}};
const Variables kKubernetes{{"JOB_COMPLETION_INDEX", "1"}};

Variables both(Variables a, const Variables& b) {
  a.insert(b.begin(), b.end());
  return a;
}
Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}
Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(LauncherEnvironment, each_launcher) {
  struct Case {
    Variables variables;
    std::string host, expected;
  };
  const std::vector<Case> cases{
      {{}, "h", "by hand"},
      {{{"HOME", "/root"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}, "h", "by hand"},  // in sbatch's script
      {with(kTorchrun, "SLURM_JOB_ID", "17"), "h",
       "torchrun rank 1/4 local 2 root h0:29501 attempt 2 of torchrun none"},
      {with(kOpenMpi, "SLURM_JOB_ID", "17"), "h", "Open MPI rank 3/4 local 2 root - attempt 0"},
      {kHydra, "h", "hydra rank 0/2 local 1 root - attempt 0"},
      {kSrun, "h", "srun rank 4/7 local 2 root n03:0 attempt 0"},
      {with(with(kSrun, "SLURM_RESTART_COUNT", "3"), "SLURM_JOB_ID", "17"), "h",
       "srun rank 4/7 local 2 root n03:0 attempt 3 of srun 17"},
      {with(with(kSrun, "SLURM_NODEID", "3"), "SLURM_STEP_NODELIST", "r[1-2]n[04,7-9]x,y"), "h",
       "srun rank 4/7 local 1 root r1n04x:0 attempt 0"},
      {with(kSrun, "SLURM_STEP_NODELIST", "solo"), "h", "srun rank 4/7 local 2 root solo:0 attempt 0"},
      {with(with(kSrun, "PMI_RANK", "4"), "PMI_SIZE", "7"), "h", "srun rank 4/7 local 2 root n03:0 attempt 0"},
      {kTrainer, "h", "Kubeflow Trainer node 1/2 local 8 root train-node-0-0.train:29400 attempt 0"},
      {without(kTrainer, "PET_NPROC_PER_NODE"), "h",
       "Kubeflow Trainer node 1/2 local - root train-node-0-0.train:29400 attempt 0"},
      {kPlain, "h", "the environment node 1/4 local - root h0:29500 attempt 0"},                           // PyTorchJob
      {with(kPlain, "LOCAL_RANK", "1"), "h", "the environment rank 1/4 local - root h0:29500 attempt 0"},  // DeepSpeed
      {kKubernetes, "job-1.service.default.svc",
       "Kubernetes node 1/- local - root job-0.service.default.svc:0 attempt 0"},
      {kKubernetes, "job-1", "Kubernetes node 1/- local - root - attempt 0"},
      {kKubernetes, "job-2.service", "Kubernetes node 1/- local - root - attempt 0"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(text(read_launcher_environment(one.variables, one.host)), one.expected);
  }
}

TEST(LauncherEnvironment, plain_variables_can_be_ignored) {
  const Variables faulty = with(kPlain, "RANK", "x");
  EXPECT_THROW(read_launcher_environment(faulty, "h"), ConfigError);
  EXPECT_EQ(read_launcher_environment(faulty, "h", PlainVariables::Ignored).starter, ProcessStarter::Hand);
  EXPECT_EQ(read_launcher_environment(both(faulty, kSrun), "h", PlainVariables::Ignored).starter, ProcessStarter::Srun);
}

// Started together by a launcher that none of the marks tells.
TEST(LauncherEnvironment, processes_that_nobody_claims) {
  const auto said = [](const Variables& variables) {
    const LauncherEnvironment found = read_launcher_environment(variables, "h");
    EXPECT_TRUE(found.starter == ProcessStarter::Hand || found.size == 1);
    return found.unclaimed ? cat(found.unclaimed->index_name, " ", found.unclaimed->size_name, " ",
                                 found.unclaimed->size, found.unclaimed->by_allocation ? " allocated" : "")
                           : "nothing";
  };
  EXPECT_EQ(said(without(kPlain, "MASTER_ADDR")), "RANK WORLD_SIZE 4");
  EXPECT_EQ(said({{"WORLD_SIZE", "2"}}), "RANK WORLD_SIZE 2");
  EXPECT_EQ(said({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}), "PMI_RANK PMI_SIZE 2");
  EXPECT_EQ(said({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), "SLURM_PROCID SLURM_NTASKS 8 allocated");
  EXPECT_EQ(said({{"SLURM_NTASKS", "8"}, {"WORLD_SIZE", "2"}}), "RANK WORLD_SIZE 2");
  const Variables one = with(with(kPlain, "WORLD_SIZE", "1"), "RANK", "0");
  EXPECT_EQ(said(one), "nothing");
  EXPECT_EQ(said(both(one, {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}})), "PMI_RANK PMI_SIZE 4");
  EXPECT_EQ(said({{"WORLD_SIZE", "1"}, {"SLURM_NTASKS", "1"}, {"PMI_SIZE", "many"}, {"RANK", "3"}}), "nothing");
}

TEST(LauncherEnvironment, a_malformed_number_of_processes_is_refused) {
  for (const char* size : {"abc", "2x", "-1"}) {
    EXPECT_THROW(read_launcher_environment({{"WORLD_SIZE", size}, {"RANK", "0"}}, "h"), ConfigError) << size;
  }
}

TEST(LauncherEnvironment, the_inner_of_two_launchers_counts) {
  const std::vector<std::pair<Variables, ProcessStarter>> cases{
      {both(kTorchrun, kSrun), ProcessStarter::Torchrun},
      {both(kOpenMpi, kSrun), ProcessStarter::OpenMpi},
      {both(kHydra, kKubernetes), ProcessStarter::Hydra},
      {both(kTrainer, kKubernetes), ProcessStarter::KubeflowTrainer},
      {both(kTorchrun, kTrainer), ProcessStarter::Torchrun},
      {both(kSrun, kKubernetes), ProcessStarter::Srun},
      {both(kPlain, kSrun), ProcessStarter::Srun},
      {both(kPlain, kTrainer), ProcessStarter::KubeflowTrainer},
      {both(kPlain, kKubernetes), ProcessStarter::Variables}};
  for (const auto& [variables, starter] : cases) {
    EXPECT_EQ(read_launcher_environment(variables, "h").starter, starter);
  }
}

// A shell that srun has started, and any process that runs alone under a launcher.
TEST(LauncherEnvironment, a_world_of_one_process_is_read_like_any_other) {
  Variables one_of_srun = with(with(kSrun, "SLURM_NTASKS", "1"), "SLURM_PROCID", "0");
  one_of_srun = with(with(one_of_srun, "SLURM_STEP_TASKS_PER_NODE", "1"), "SLURM_NODEID", "0");
  one_of_srun = with(with(one_of_srun, "SLURM_RESTART_COUNT", "2"), "SLURM_JOB_ID", "17");
  const LauncherEnvironment shell = read_launcher_environment(one_of_srun, "h");
  EXPECT_EQ(shell.size, 1);
  EXPECT_EQ(shell.attempt, 2);
  EXPECT_EQ(shell.job, "srun 17");
  EXPECT_FALSE(shell.unclaimed);
  Variables one_of_mpi = with(with(kOpenMpi, "OMPI_COMM_WORLD_SIZE", "1"), "OMPI_COMM_WORLD_RANK", "0");
  one_of_mpi = with(with(one_of_mpi, "OMPI_COMM_WORLD_LOCAL_RANK", "0"), "OMPI_COMM_WORLD_LOCAL_SIZE", "1");
  for (const Variables& one :
       {one_of_mpi, with(kHydra, "PMI_SIZE", "1"), with(with(kPlain, "WORLD_SIZE", "1"), "RANK", "0")}) {
    EXPECT_EQ(read_launcher_environment(one, "h").size, 1);
  }
}

TEST(LauncherEnvironment, contradictions_are_named) {
  const std::vector<std::pair<Variables, std::string>> cases{
      {both(kTorchrun, kOpenMpi),
       "OMPI_COMM_WORLD_RANK = 3: says that Open MPI started this, and TORCHELASTIC_RUN_ID that torchrun did: unset "
       "the "
       "variables of one"},
      {without(kTorchrun, "WORLD_SIZE"),
       "WORLD_SIZE: is not set, though TORCHELASTIC_RUN_ID says that torchrun started this"},
      {with(kTorchrun, "RANK", "4"), "RANK = 4: must be less than WORLD_SIZE (4)"},
      {with(kTorchrun, "RANK", "-1"), "RANK = -1: must be a number, 0 or more"},
      {with(with(kTorchrun, "RANK", "x"), "LOCAL_WORLD_SIZE", "y"),
       "RANK = x: must be a number, 0 or more\nLOCAL_WORLD_SIZE = y: must be a number, 0 or more"},
      {with(kTorchrun, "MASTER_PORT", "65535"), "MASTER_PORT = 65535: leaves no port for node 0"},
      {with(kTorchrun, "MASTER_PORT", "0"), "MASTER_PORT = 0: must be a port, from 1 to 65535"},
      {with(kTrainer, "PET_MASTER_PORT", "65536"), "PET_MASTER_PORT = 65536: must be a port, from 1 to 65535"},
      {with(kTorchrun, "MASTER_ADDR", ""), "MASTER_ADDR: must be the name or the address of a host"},
      {with(kTorchrun, "MASTER_ADDR", "a b"), "MASTER_ADDR = a b: must be the name or the address of a host"},
      {with(kTorchrun, "LOCAL_RANK", "2"), "LOCAL_RANK = 2: must be less than LOCAL_WORLD_SIZE (2)"},
      {with(with(kTorchrun, "LOCAL_RANK", "0"), "LOCAL_WORLD_SIZE", "0"),
       "LOCAL_WORLD_SIZE = 0: must be from 1 to WORLD_SIZE (4)"},
      {with(kTorchrun, "LOCAL_WORLD_SIZE", "5"), "LOCAL_WORLD_SIZE = 5: must be from 1 to WORLD_SIZE (4)"},
      {with(kTorchrun, "GROUP_RANK", "4"), "GROUP_RANK = 4: must be less than WORLD_SIZE (4)"},
      {with(with(kTorchrun, "GROUP_RANK", "2"), "GROUP_WORLD_SIZE", "2"),
       "GROUP_RANK = 2: must be less than GROUP_WORLD_SIZE (2)"},
      {with(kOpenMpi, "OMPI_COMM_WORLD_LOCAL_RANK", "7"),
       "OMPI_COMM_WORLD_LOCAL_RANK = 7: must be less than OMPI_COMM_WORLD_LOCAL_SIZE (2)"},
      {with(kHydra, "MPI_LOCALRANKID", "1"), "MPI_LOCALRANKID = 1: must be less than MPI_LOCALNRANKS (1)"},
      {with(with(kSrun, "SLURM_NODEID", "3"), "SLURM_LOCALID", "1"),
       "SLURM_LOCALID = 1: must be less than SLURM_STEP_TASKS_PER_NODE of this node (1)"},
      {with(kTrainer, "PET_NPROC_PER_NODE", "0"), "PET_NPROC_PER_NODE = 0: must be 1 or more"},
      {without(kSrun, "SLURM_PROCID"),
       "SLURM_PROCID: is not set, though SLURM_STEP_NODELIST says that srun started this"},
      {with(kSrun, "SLURM_NODEID", "4"), "SLURM_STEP_TASKS_PER_NODE = 2(x3),1: has no entry of node 4"},
      {with(kTrainer, "PET_NODE_RANK", "2"), "PET_NODE_RANK = 2: must be less than PET_NNODES (2)"},
      {with(kPlain, "RANK", "4"), "RANK = 4: must be less than WORLD_SIZE (4)"},
      {with(kPlain, "WORLD_SIZE", "x"), "WORLD_SIZE = x: must be a number, 0 or more"},
      {{{"JOB_COMPLETION_INDEX", ""}}, "JOB_COMPLETION_INDEX: must be a number, 0 or more"},
  };
  for (const auto& [variables, expected] : cases) {
    try {
      read_launcher_environment(variables, "h");
      ADD_FAILURE() << "not refused: " << expected;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.what(), expected);
    }
  }
}

TEST(LauncherEnvironment, a_list_that_names_no_hosts_is_named) {
  for (const char* list : {"", "[", "]", "n[1-0]", "n[a-b]", "n[0-1", "n[2", "n[0,,1]", "n[]", "n[1-2-3]", "n[-2]",
                           "n,", ",n", "n]", "a b", "n[[0]]"}) {
    try {
      read_launcher_environment(with(kSrun, "SLURM_STEP_NODELIST", list), "h");
      ADD_FAILURE() << "not refused: " << list;
    } catch (const ConfigError& error) {
      ASSERT_EQ(error.problems().size(), 1u);
      EXPECT_EQ(error.problems()[0], (Problem{"SLURM_STEP_NODELIST", list,
                                              "must be hosts as Slurm lists them, such as n[03-05,9],k1", "", ""}));
    }
  }
  for (const char* list : {"n[0-99999999999]", "n[9-10]", "n[007-12]x[3],k", "n-1.example"}) {
    EXPECT_TRUE(read_launcher_environment(with(kSrun, "SLURM_STEP_NODELIST", list), "h").root.has_value()) << list;
  }
}

// Whatever they hold, reading them ends with an answer or a ConfigError.
TEST(LauncherEnvironment, lists_of_slurm_in_any_state) {
  const std::string list = "r[1-2]n[04,7-9]x,2(x3),1(x)(x,[,],";
  for (size_t begin = 0; begin < list.size(); ++begin) {
    for (size_t end = begin; end <= list.size(); ++end) {
      const auto part = list.substr(begin, end - begin);
      try {
        read_launcher_environment(with(with(kSrun, "SLURM_STEP_NODELIST", part), "SLURM_STEP_TASKS_PER_NODE", part),
                                  "h");
      } catch (const ConfigError&) {
      }
    }
  }
}

}  // namespace
}  // namespace braid::control::launcher_environment_test
