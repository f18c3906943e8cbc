// Determines a command's place in its job from its options and the launcher's variables, and checks that these agree.
#include "braid/cli/torch/job.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/token_variable.h"
#include "braid/control/job_token.h"
#include "braid/control/join_job.h"
#include "braid/control/launcher_environment.h"
#include "braid/launch/engines.h"

namespace braid::cli {
namespace {

constexpr const char *kRootOption = "--root", *kTokenOption = "--token-file";
constexpr double kJoinSeconds = 300;
// Time limit for the root's host name to become known, if no launcher started this command. With a launcher it is
// kJoinSeconds, because a pod's name becomes known only when the pod starts.
constexpr double kNameSeconds = 30;
// If a launcher has started all ranks on one host and gives no port, they use one derived from their common parent.
constexpr int kFirstPort = 20000, kNumPorts = 12000;
static_assert(kFirstPort + kNumPorts <= 32768);  // where the ports begin that Linux gives to connections
constexpr int kUsualPort = 29500;                // port if a launcher names the first host but no port

// Returns all environment variables except the token, which must not be copied.
std::map<std::string, std::string> variables() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    if (token_value(*entry)) continue;
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != text.npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return all;
}

// Returns the address of node 0 as HOST:PORT; empty if the launcher's variables do not determine it.
std::string root_of(const control::LauncherEnvironment& started) {
  if (started.root && started.root->port > 0) return control::text(*started.root);
  const bool one_host = started.local_size && started.size && *started.local_size == *started.size;
  if (one_host) return cat("127.0.0.1:", kFirstPort + getppid() % kNumPorts);
  return started.root ? control::text(control::JobAddress{started.root->host, kUsualPort}) : "";
}

void take_attempt(const control::LauncherEnvironment& started, JobPlace& place) {
  place.attempt = started.attempt;
  place.launcher_restarts = started.starter == control::ProcessStarter::Torchrun;
  place.job = started.job;
  if (started.starter == control::ProcessStarter::Torchrun)
    place.job += cat(" of process ", getppid());  // torchrun's agent, which outlives attempts
}

bool gives_place(const JobOptions& options) { return options.nodes > 0 || options.node >= 0 || !options.root.empty(); }

// Returns true if no launcher determines the place: the command's options do, or the command runs alone. This is so
// without a launcher, with a launcher of one process (a shell of `srun --pty`), and in a pod of a Kubernetes Job with
// neither a place nor a token.
bool is_by_hand(const control::LauncherEnvironment& started, const JobOptions& options) {
  if (started.size == 1) return true;
  const bool has_token = !options.token_file.empty() || std::getenv(kTokenVariable);
  if (started.starter == control::ProcessStarter::KubernetesJob) return !gives_place(options) && !has_token;
  return started.starter == control::ProcessStarter::Hand;
}

// Returns the place of a command that runs alone. Adds a problem if several processes were started together by an
// unknown launcher: each would train alone, in the same folder.
JobPlace place_alone(const control::LauncherEnvironment& started, std::vector<Problem>& problems) {
  JobPlace place;
  take_attempt(started, place);
  if (started.starter == control::ProcessStarter::KubernetesJob) {
    place.note = cat(started.index_name, " = ", *started.index,
                     ", and this runs alone: --nodes would join it with the other pods of its job");
  }
  if (!started.unclaimed) return place;
  const auto& [index_name, size_name, size, by_allocation] = *started.unclaimed;
  if (by_allocation) {
    place.note = cat(size_name, " = ", size, ", and this runs alone: srun would start all of them");
  } else {
    problems.push_back(
        {size_name, cat(size),
         cat("says that ", size, " processes were started together, and no launcher that braid knows has: unset ",
             index_name, " and ", size_name, ", or give each its place by --nodes, --node and --root",
             index_name == "RANK" ? ", or set MASTER_ADDR and MASTER_PORT too" : "")});
  }
  return place;
}

JobPlace place_by_hand(const control::LauncherEnvironment& started, const JobOptions& options,
                       std::vector<Problem>& problems) {
  // A world of one process needs neither a root nor a token, even if a command line for larger worlds names them.
  if (started.size == 1 && options.node < 0 && options.nodes <= 1) return place_alone(started, problems);
  const bool any = gives_place(options);
  if (!any && !options.token_file.empty()) {
    problems.push_back({kTokenOption, options.token_file, "must come with --nodes, --node and --root, or a launcher"});
  }
  if (!any) return place_alone(started, problems);
  const auto need = [&](bool there, const char* option) {
    if (!there) problems.push_back({option, "", "must be given with the other two of --nodes, --node and --root"});
  };
  need(options.nodes > 0, "--nodes");
  need(options.node >= 0, "--node");
  need(!options.root.empty(), kRootOption);
  if (options.nodes > 0 && options.node >= options.nodes) {
    problems.push_back(
        {"--node", cat(options.node), cat("must be less than --nodes (", options.nodes, ")"), cat(options.nodes - 1)});
  }
  return {options.node, options.nodes};
}

JobPlace place_by_launcher(const control::LauncherEnvironment& started, const JobOptions& options,
                           std::vector<Problem>& problems) {
  if (options.node >= 0) {
    problems.push_back({"--node", cat(options.node), cat("must not be given: ", started.name, " says it")});
  }
  const bool size_missing = !started.size && options.nodes == 0;
  if (size_missing) problems.push_back({"--nodes", "", cat("must be given: ", started.name, " does not say it")});
  if (started.size && options.nodes > 0 && options.nodes != *started.size) {
    problems.push_back(
        {"--nodes", cat(options.nodes), cat("must be what ", started.name, " says"), cat(*started.size)});
  }
  if (!started.size && options.nodes > 0 && started.index >= options.nodes) {
    problems.push_back({started.index_name, cat(*started.index), cat("must be less than --nodes (", options.nodes, ")"),
                        cat(options.nodes - 1)});
  }
  JobPlace place;
  place.launcher = started.name;
  place.one_rank_each = started.unit == control::StartedPerRankOrNode::Rank;
  take_attempt(started, place);
  place.node = started.index.value_or(0);
  place.num_nodes = started.size.value_or(options.nodes);
  return place;
}

control::JobToken token_of(const JobOptions& options, JobPlace& place) {
  if (!options.token_file.empty())
    return control::token_of_file({kTokenOption, options.token_file, options.token_file});
  if (const char* const text = std::getenv(kTokenVariable)) {
    place.token_key = kTokenVariable;
    return control::token_of_text(kTokenVariable, text);
  }
  place.on_this_host = true;
  return control::token_of_host(control::host_token_folder());
}

// Derives the keys from the token, which is not kept.
void make_keys(const JobOptions& options, JobPlace& place) {
  place.keys = std::make_shared<const control::JobKeys>(token_of(options, place), place.attempt);
}

std::vector<int> hosts_of_ranks(const Job& job, bool one_rank_each) {
  std::vector<std::string> hosts;
  std::vector<int> host_of_node, host_of_rank;
  for (const control::JobNode& node : job.nodes()) {
    const auto known = one_rank_each ? std::ranges::find(hosts, node.host) : hosts.end();
    host_of_node.push_back(static_cast<int>(known - hosts.begin()));
    if (known == hosts.end()) hosts.push_back(node.host);
  }
  for (const int node : job.node_of_rank()) host_of_rank.push_back(host_of_node[static_cast<size_t>(node)]);
  return host_of_rank;
}

}  // namespace

void add_job_options(CLI::App& app, JobOptions& options) {
  app.add_option("--nodes", options.nodes, "hosts that run this command together, each with its --node")
      ->check(CLI::Range(1, 100000));
  app.add_option("--node", options.node, "which of them this is, from 0")->check(CLI::Range(0, 99999));
  app.add_option(kRootOption, options.root, "where node 0 listens, as HOST:PORT, an address of its own");
  app.add_option(
      kTokenOption, options.token_file,
      "the job's secret (braid token), the same on all; or the variable BRAID_TOKEN; on one host none is needed");
}

std::vector<std::string> job_words(const JobOptions& options) {
  const auto& [nodes, node, root, token_file] = options;
  std::vector<std::string> words{"--nodes", cat(nodes), "--node", cat(node), kRootOption, root};
  if (!token_file.empty()) words.insert(words.end(), {kTokenOption, token_file});
  return words;
}

JobPlace job_place(const JobOptions& options) {
  char domain_name[256] = {};
  gethostname(domain_name, sizeof domain_name - 1);
  // Options take precedence over plain variables (RANK, WORLD_SIZE, ...), which another program may have left.
  const auto plain = gives_place(options) ? control::PlainVariables::Ignored : control::PlainVariables::Read;
  const control::LauncherEnvironment started = control::read_launcher_environment(variables(), domain_name, plain);
  std::vector<Problem> problems;
  const bool by_hand = is_by_hand(started, options);
  JobPlace place = by_hand ? place_by_hand(started, options, problems) : place_by_launcher(started, options, problems);
  const std::string root = by_hand || !options.root.empty() ? options.root : root_of(started);
  if (!by_hand && root.empty() && place.num_nodes > 1) {
    problems.push_back({kRootOption, "", cat("must be given: ", started.name, " names no address of its first host")});
  }
  if (!root.empty()) collect_problems(problems, [&] { place.root = control::parse_job_address(kRootOption, root); });
  if (place.num_nodes > 1) collect_problems(problems, [&] { make_keys(options, place); });
  forget_token_variable();
  throw_problems(std::move(problems));
  return place;
}

Job::Job(JobPlace& place, const JobWork& work)
    : control_([&] {
        control::JoinOptions join;
        join.node = place.node;
        join.num_nodes = place.num_nodes;
        join.root = place.root;
        join.root_key = kRootOption;
        join.keys = std::exchange(place.keys, nullptr);
        join.on_this_host = place.on_this_host;
        join.token_key = place.token_key;
        join.self = {host_name(), work.ranks_here};
        for (int node = 0; node < place.num_nodes && !work.node_of_rank.empty(); ++node) {
          join.ranks_of_nodes.push_back(static_cast<int>(std::ranges::count(work.node_of_rank, node)));
        }
        join.engines = work.engines;
        join.settings = work.settings;
        join.join_seconds = kJoinSeconds;
        join.name_seconds = place.launcher.empty() ? kNameSeconds : kJoinSeconds;
        join.on_wait = work.on_wait;
        join.heartbeat_seconds = work.heartbeat_seconds;
        return control::join_job(join);
      }()),
      rounds_(*control_, work.progress_seconds),
      node_of_rank_(work.node_of_rank.empty() ? nodes_of_ranks(control_->nodes()) : work.node_of_rank),
      host_of_rank_(hosts_of_ranks(*this, place.one_rank_each)),
      launcher_(rounds_, {node_of_rank_, control::own_address(kRootOption, place.root), work.engine,
                          work.heartbeat_seconds, host_of_rank_}) {}

std::string version_text(CommEngine engine) {
  return cat("braid ", BRAID_VERSION, ", ", launch::engine_version(engine));
}

}  // namespace braid::cli
