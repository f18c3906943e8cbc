// The job that a command is a node of: what the user or a launcher said of it, its nodes, and how its ranks start. One
// command is a node of its own job as long as nobody says otherwise, and has no Job then.
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
  int nodes = 0;           // 0: not said
  int node = -1;           // -1: not said
  std::string root;        // HOST:PORT of node 0
  std::string token_file;  // empty: BRAID_TOKEN, where that is set; else this host's own token
};
void add_job_options(CLI::App& app, JobOptions& options);
// The words of a command that say `options`, all of which are given but for the token's file.
std::vector<std::string> job_words(const JobOptions& options);

// This command's place, as its words and the launcher's variables say it together.
struct JobPlace {
  int node = 0, num_nodes = 1;
  control::JobAddress root;
  std::shared_ptr<const control::JobKeys> keys;  // null for a job of one node
  bool on_this_host = false;                     // no token was given: that of this host is used (control/host_token.h)
  std::string token_key = "--token-file";        // how errors name it: as it was given
  std::string launcher;                          // "torchrun"; empty: by hand
  bool one_rank_each = false;
  int attempt = 0;
  std::string note;  // to be said to the user; empty: nothing
  std::string job;   // which job of the launcher this is an attempt of; empty: nobody says
};
// Forgets BRAID_TOKEN (below), after use. Throws ConfigError with every contradiction, everything that is missing, an
// address that is none and a token that cannot be had.
JobPlace job_place(const JobOptions& options);

// The engines of this program with their versions.
std::string engines_text();

// A command's contribution to its job.
struct JobWork {
  int ranks_here = 1;                    // that this node starts
  std::vector<int> node_of_rank;         // by rank of the world; empty: the nodes' ranks, one node after another
  std::vector<std::string> settings;     // "train.steps = 50": what must be equal on all nodes
  std::string engines = engines_text();  // these too
  double heartbeat_seconds = LaunchSpec().heartbeat_seconds;
  double progress_seconds = 0;  // of the spec; 0: however long
  ReductionOrder sums = ReductionOrder::Tree;
  std::function<void(const std::string& what)> on_wait = [](const std::string&) {};  // join_job.h
};

class Job {
 public:
  // Joins the other nodes: blocks until all are there. Takes the keys out of `place`: nobody else keeps them. Throws as
  // join_job().
  Job(JobPlace& place, const JobWork& work);

  bool leads() const { return rounds_.node() == 0; }
  launch::JobRounds& rounds() { return rounds_; }
  const HostsLauncher& launcher() const { return launcher_; }
  int num_nodes() const { return static_cast<int>(rounds_.nodes().size()); }
  const std::vector<control::JobNode>& nodes() const { return rounds_.nodes(); }
  const std::vector<int>& node_of_rank() const { return node_of_rank_; }
  // A node is a host, or a rank of one where a launcher has started each: then equal names are one host. By rank of the
  // world; hosts are counted in the order of nodes.
  const std::vector<int>& host_of_rank() const { return host_of_rank_; }

 private:
  std::unique_ptr<control::JobControl> control_;
  launch::JobRounds rounds_;
  std::vector<int> node_of_rank_, host_of_rank_;
  HostsLauncher launcher_;
};

}  // namespace braid::cli
