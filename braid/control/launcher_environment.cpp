// One row per launcher.
// - torchrun: its agent listens on MASTER_PORT, so node 0 takes the next port.
// - Slurm: sbatch also sets the variables of a task, but only steps of srun have a list of nodes.
// - hydra: `srun --mpi=pmi2` also sets PMI_RANK, but only hydra sets MPI_LOCALRANKID.
// - RANK etc.: a process with LOCAL_RANK (DeepSpeed) is a rank, one without it (a pod of PyTorchJob) is a node.
#include "braid/control/launcher_environment.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::control {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr int kMostPort = 65535;

struct LauncherRow {
  ProcessStarter starter;
  const char* name;
  const char* mark;  // variable that only this launcher sets
  int depth;         // lowest for the innermost launcher; launchers of equal depth do not start each other
  StartedPerRankOrNode unit;
  // Names of variables; null if the launcher sets none.
  const char *index, *size, *local_index, *local_size, *host, *port, *attempt, *job;
};

constexpr LauncherRow kLaunchers[] = {
    {ProcessStarter::Torchrun, "torchrun", "TORCHELASTIC_RUN_ID", 0, StartedPerRankOrNode::Rank, "RANK", "WORLD_SIZE",
     "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT",
     "TORCHELASTIC_RUN_ID"},
    {ProcessStarter::OpenMpi, "Open MPI", "OMPI_COMM_WORLD_RANK", 0, StartedPerRankOrNode::Rank, "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr, nullptr,
     nullptr},
    {ProcessStarter::Hydra, "hydra", "MPI_LOCALRANKID", 0, StartedPerRankOrNode::Rank, "PMI_RANK", "PMI_SIZE",
     "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, nullptr, nullptr, nullptr},
    {ProcessStarter::Srun, "srun", "SLURM_STEP_NODELIST", 1, StartedPerRankOrNode::Rank, "SLURM_PROCID", "SLURM_NTASKS",
     "SLURM_LOCALID", nullptr, nullptr, nullptr, "SLURM_RESTART_COUNT", "SLURM_JOB_ID"},
    {ProcessStarter::KubeflowTrainer, "Kubeflow Trainer", "PET_NODE_RANK", 2, StartedPerRankOrNode::Node,
     "PET_NODE_RANK", "PET_NNODES", nullptr, "PET_NPROC_PER_NODE", "PET_MASTER_ADDR", "PET_MASTER_PORT", nullptr,
     nullptr},
    {ProcessStarter::Variables, "the environment", "RANK", 3, StartedPerRankOrNode::Node, "RANK", "WORLD_SIZE",
     "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", nullptr, nullptr},
    {ProcessStarter::KubernetesJob, "Kubernetes", "JOB_COMPLETION_INDEX", 4, StartedPerRankOrNode::Node,
     "JOB_COMPLETION_INDEX", nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
};

std::optional<int> whole_number(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

bool is_host(const std::string& text) {
  const auto is_odd = [](unsigned char c) { return c <= ' ' || c == '[' || c == ']'; };
  return !text.empty() && std::ranges::none_of(text, is_odd);
}

class LauncherReader {
 public:
  LauncherReader(const Variables& variables, const LauncherRow& row) : variables_(variables), row_(row) {}

  std::vector<Problem> problems;

  std::optional<std::string> word(const char* name) {
    if (name == nullptr) return std::nullopt;
    const auto found = variables_.find(name);
    if (found != variables_.end()) return found->second;
    problems.push_back(
        {name, "", cat("is not set, though ", row_.mark, " says that ", row_.name, " started this"), ""});
    return std::nullopt;
  }
  std::optional<int> number(const char* name) {
    const auto text = word(name);
    const auto number = text ? whole_number(*text) : std::nullopt;
    if (text && !number) problems.push_back({name, *text, "must be a number, 0 or more", ""});
    return number;
  }
  std::optional<int> number_if_set(const char* name) {
    return name != nullptr && variables_.contains(name) ? number(name) : std::nullopt;
  }
  void below(const char* index_name, std::optional<int> index, const char* size_name, std::optional<int> size) {
    if (index && size && *index >= *size) {
      problems.push_back({index_name, cat(*index), cat("must be less than ", size_name, " (", *size, ")"), ""});
    }
  }

 private:
  const Variables& variables_;
  const LauncherRow& row_;
};

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns true if `from` is at most `to`, for numbers of any length.
bool is_upwards(std::string_view from, std::string_view to) {
  from.remove_prefix(std::min(from.find_first_not_of('0'), from.size()));
  to.remove_prefix(std::min(to.find_first_not_of('0'), to.size()));
  return from.size() < to.size() || (from.size() == to.size() && from <= to);
}

// Returns the first number of a list such as "03-05,9", here 03; nullopt for a malformed list.
std::optional<std::string> first_of_ranges(std::string_view list) {
  const std::string first(list.substr(0, list.find_first_of("-,")));
  for (size_t end = 0; end != std::string_view::npos;) {
    end = list.find(',');
    const std::string_view range = list.substr(0, end), from = range.substr(0, range.find('-'));
    const std::string_view to = from.size() == range.size() ? from : range.substr(from.size() + 1);
    if (!is_digits(from) || !is_digits(to) || !is_upwards(from, to)) return std::nullopt;
    if (end != std::string_view::npos) list.remove_prefix(end + 1);
  }
  return first;
}

// Returns the first host of a list such as "h[03-05,9],k1", here h03; nullopt for a malformed host list.
std::optional<std::string> first_of_nodes(const std::string& list) {
  std::vector<std::string> names(1);  // the first host of each member
  for (size_t at = 0; at < list.size(); ++at) {
    if (list[at] == ',') {
      names.emplace_back();
    } else if (list[at] == '[') {
      const size_t end = std::min(list.find(']', at), list.size());
      const auto number = first_of_ranges(std::string_view(list).substr(at + 1, end - at - 1));
      if (end == list.size() || !number) return std::nullopt;
      names.back() += *number;
      at = end;
    } else {
      names.back() += list[at];
    }
  }
  return std::ranges::all_of(names, is_host) ? std::optional(names[0]) : std::nullopt;
}

// Returns the entry of node `index` in a list such as "2(x3),1", which stands for 2, 2, 2, 1.
std::optional<int> tasks_of_node(std::string_view list, int index) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    const size_t times_at = entry.find("(x");
    const auto tasks = whole_number(std::string(entry.substr(0, times_at)));
    std::optional<int> times = 1;
    if (times_at != std::string_view::npos) {
      times = whole_number(std::string(entry.substr(times_at + 2, entry.size() - times_at - 3)));
    }
    if (!tasks || !times) return std::nullopt;
    if (index < *times) return tasks;
    index -= *times;
  }
  return std::nullopt;
}

void read_slurm(LauncherReader& reader, LauncherEnvironment& found) {
  if (const auto nodes = reader.word("SLURM_STEP_NODELIST")) {
    const auto first = first_of_nodes(*nodes);
    if (first) found.root = {*first, 0};
    if (!first) {
      reader.problems.push_back(
          {"SLURM_STEP_NODELIST", *nodes, "must be hosts as Slurm lists them, such as n[03-05,9],k1", ""});
    }
  }
  const auto node = reader.number("SLURM_NODEID");
  const auto tasks = reader.word("SLURM_STEP_TASKS_PER_NODE");
  if (!node || !tasks) return;
  found.local_size = tasks_of_node(*tasks, *node);
  if (!found.local_size) {
    reader.problems.push_back({"SLURM_STEP_TASKS_PER_NODE", *tasks, cat("has no entry of node ", *node), ""});
  }
}

// Turns `job-3.service` of pod 3 into `job-0.service`. Returns nullopt without a domain, because other pods cannot
// resolve the name then.
std::optional<JobAddress> first_pod(const std::string& host, std::optional<int> index) {
  const size_t dot = host.find('.');
  const std::string end = cat("-", index.value_or(0));
  if (!index || dot == std::string::npos || !host.substr(0, dot).ends_with(end)) return std::nullopt;
  return JobAddress{cat(host.substr(0, dot - end.size()), "-0", host.substr(dot)), 0};
}

void read_root(LauncherReader& reader, const LauncherRow& row, LauncherEnvironment& found) {
  const auto host = reader.word(row.host);
  const auto port = reader.number(row.port);
  if (host && !is_host(*host)) {
    reader.problems.push_back({row.host, *host, "must be the name or the address of a host", ""});
  }
  if (port && (*port < 1 || *port > kMostPort)) {
    reader.problems.push_back({row.port, cat(*port), cat("must be a port, from 1 to ", kMostPort), ""});
  }
  if (!host || !port) return;
  const int port_of_node_0 = *port + (row.starter == ProcessStarter::Torchrun ? 1 : 0);
  if (*port <= kMostPort && port_of_node_0 > kMostPort) {
    reader.problems.push_back({row.port, cat(*port), "leaves no port for node 0", ""});
  }
  found.root = {*host, port_of_node_0};
}

// Reports impossible values of the unit's place on its host, and of its agent's place among the agents.
void refuse_odd_places(LauncherReader& reader, const LauncherRow& row, const LauncherEnvironment& found) {
  const bool of_ranks = found.unit == StartedPerRankOrNode::Rank;
  const int most = of_ranks && found.size > 0 ? *found.size : INT_MAX;
  if (row.local_size != nullptr && found.local_size && (*found.local_size < 1 || *found.local_size > most)) {
    const std::string rule =
        most < INT_MAX ? cat("must be from 1 to ", row.size, " (", most, ")") : "must be 1 or more";
    reader.problems.push_back({row.local_size, cat(*found.local_size), rule, ""});
  } else {
    const std::string tasks = "SLURM_STEP_TASKS_PER_NODE of this node";
    reader.below(row.local_index, reader.number_if_set(row.local_index),
                 row.starter == ProcessStarter::Srun ? tasks.c_str() : row.local_size, found.local_size);
  }
  if (row.starter != ProcessStarter::Torchrun) return;
  const auto num_agents = reader.number_if_set("GROUP_WORLD_SIZE");  // each agent has at least one rank
  reader.below("GROUP_RANK", reader.number_if_set("GROUP_RANK"), num_agents ? "GROUP_WORLD_SIZE" : row.size,
               num_agents ? num_agents : found.size);
}

// Returns true if the row's launcher has started this process.
bool is_of(const LauncherRow& row, const Variables& variables) {
  const auto is_set = [&](const char* name) { return variables.contains(name); };
  if (row.starter != ProcessStarter::Variables) return is_set(row.mark);
  return is_set(row.index) && is_set(row.size) && is_set(row.host) && is_set(row.port);
}

// Returns a world size above 1 that no row's launcher has set: RANK and WORLD_SIZE without an address, PMI's variables
// alone, or those of an sbatch script.
std::optional<UnclaimedProcesses> unclaimed_world(const Variables& variables) {
  for (const LauncherRow& row : kLaunchers) {
    if (row.size == nullptr || !variables.contains(row.size)) continue;
    const auto number = whole_number(variables.at(row.size));
    if (!number && row.index != nullptr && variables.contains(row.index)) {
      throw ConfigError({{row.size, variables.at(row.size), "must be a whole number, or unset", ""}});
    }
    const int size = number.value_or(0);
    if (size > 1) return UnclaimedProcesses{row.index, row.size, size, row.starter == ProcessStarter::Srun};
  }
  return std::nullopt;
}

LauncherEnvironment read_row(const Variables& variables, const LauncherRow& row, const std::string& full_host_name) {
  const bool says_local_size = row.unit == StartedPerRankOrNode::Rank;
  LauncherReader reader(variables, row);
  LauncherEnvironment found{row.starter, row.name, row.unit};
  if (row.starter == ProcessStarter::Variables && variables.contains(row.local_index))
    found.unit = StartedPerRankOrNode::Rank;
  found.index_name = row.index;
  found.index = reader.number(row.index);
  found.size = reader.number(row.size);
  found.local_size = says_local_size ? reader.number(row.local_size) : reader.number_if_set(row.local_size);
  found.attempt = reader.number_if_set(row.attempt).value_or(0);
  if (row.job != nullptr && variables.contains(row.job)) found.job = cat(row.name, " ", variables.at(row.job));
  if (row.host != nullptr) read_root(reader, row, found);
  if (row.starter == ProcessStarter::Srun) read_slurm(reader, found);
  if (row.starter == ProcessStarter::KubernetesJob) found.root = first_pod(full_host_name, found.index);
  reader.below(row.index, found.index, row.size, found.size);
  refuse_odd_places(reader, row, found);
  if (!reader.problems.empty()) throw ConfigError(std::move(reader.problems));
  if (found.size == 1) found.unclaimed = unclaimed_world(variables);
  return found;
}

}  // namespace

LauncherEnvironment read_launcher_environment(const Variables& variables, const std::string& full_host_name,
                                              PlainVariables plain) {
  const LauncherRow* chosen = nullptr;
  for (const LauncherRow& row : kLaunchers) {
    if (row.starter == ProcessStarter::Variables && plain == PlainVariables::Ignored) continue;
    if (!is_of(row, variables)) continue;
    if (chosen != nullptr && row.depth == chosen->depth) {
      throw ConfigError({{row.mark, variables.at(row.mark),
                          cat("says that ", row.name, " started this, and ", chosen->mark, " that ", chosen->name,
                              " did: unset the variables of one"),
                          ""}});
    }
    if (chosen == nullptr) chosen = &row;  // rows are in order of depth
  }
  if (chosen != nullptr) return read_row(variables, *chosen, full_host_name);
  LauncherEnvironment found;
  found.unclaimed = unclaimed_world(variables);
  return found;
}

}  // namespace braid::control
