// The job of a command that runs on several nodes: its options, its place from the command line or a launcher, its
// nodes, and how its ranks start. A command that runs alone is the only node of its own job and has no Job object.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/control/job_address.h"
#include "braid/control/job_control.h"
#include "braid/control/job_token.h"
#include "braid/launch/hosts_launcher.h"
#include "braid/launch/job_rounds.h"

namespace braid::cli {

// A command's options about its job.
struct JobOptions {
  int nodes = 0;           // 0: not given
  int node = -1;           // -1: not given
  std::string root;        // HOST:PORT of node 0
  std::string token_file;  // empty: BRAID_TOKEN if that is set, else this host's own token
};
void add_job_options(CLI::App& app, JobOptions& options);
// Returns the words of a command line that give `options`. REQUIRES: all options are given, except that the token's
// file may be missing.
std::vector<std::string> job_words(const JobOptions& options);

// This command's place in its job, from its words and the launcher's variables.
struct JobPlace {
  int node = 0, num_nodes = 1;
  control::JobAddress root;
  std::shared_ptr<const control::JobKeys> keys;  // null for a job of one node
  bool on_this_host = false;               // no token was given, and that of this host is used (control/job_token.h)
  std::string token_key = "--token-file";  // the token's source as errors name it
  std::string launcher;                    // "torchrun"; empty: by hand
  bool one_rank_each = false;
  bool launcher_restarts = false;  // the launcher restarts processes that fail
  int attempt = 0;
  std::string note;  // note to show to the user; empty: none
  std::string job;   // identity of the launcher's job of which this is an attempt; empty: unknown
};
// Determines the place. Removes BRAID_TOKEN from the environment after use (token_variable.h). Throws ConfigError with
// every contradiction and everything that is missing, for a malformed address, and for a token that cannot be read.
JobPlace job_place(const JobOptions& options);

// Returns the versions of this program and of the engine between its ranks.
std::string version_text(CommEngine engine);

// A command's contribution to its job.
struct JobWork {
  int ranks_here = 1;                 // number of ranks that this node starts
  std::vector<int> node_of_rank;      // node of each rank of the world; empty: ranks are numbered node by node
  std::vector<std::string> settings;  // settings that must be equal on all nodes: "train.steps = 50"
  std::string engines = version_text(CommEngine::Tcp);  // must be equal on all nodes
  double heartbeat_seconds = LaunchSpec().heartbeat_seconds;
  double progress_seconds = 0;  // `run.progress_seconds` of the spec; 0: no limit
  CommEngine engine = CommEngine::Tcp;
  // callback as in control::JoinOptions
  std::function<void(const std::string& what)> on_wait = [](const std::string&) {};
};

class Job {
 public:
  // Joins the other nodes; blocks until all are there. Moves the keys out of `place`; no other copy remains. Throws as
  // join_job() does.
  Job(JobPlace& place, const JobWork& work);

  bool leads() const { return rounds_.node() == 0; }
  launch::JobRounds& rounds() { return rounds_; }
  const HostsLauncher& launcher() const { return launcher_; }
  int num_nodes() const { return static_cast<int>(rounds_.nodes().size()); }
  const std::vector<control::JobNode>& nodes() const { return rounds_.nodes(); }
  const std::vector<int>& node_of_rank() const { return node_of_rank_; }
  // Returns the host of each rank of the world. Hosts are numbered in the order of nodes. Usually a node is a host. If
  // a launcher started each rank as a node, nodes with equal host names are one host.
  const std::vector<int>& host_of_rank() const { return host_of_rank_; }

 private:
  std::unique_ptr<control::JobControl> control_;
  launch::JobRounds rounds_;
  std::vector<int> node_of_rank_, host_of_rank_;
  HostsLauncher launcher_;
};

}  // namespace braid::cli
