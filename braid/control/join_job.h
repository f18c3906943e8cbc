// Joins the nodes of a job: node 0 listens, and all others connect to it. docs/many_hosts.md describes the protocol.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/control/job_address.h"
#include "braid/control/job_control.h"
#include "braid/control/job_token.h"

namespace braid::control {

struct JoinOptions {
  int node = 0, num_nodes = 1;
  JobAddress root;                      // address of node 0, the only one on which it listens
  std::shared_ptr<const JobKeys> keys;  // from the job's token and attempt, both equal on all nodes
  bool on_this_host = false;            // the token is this host's own (job_token.h), so node 0 must be on loopback
  std::string root_key = "root", token_key = "token";  // names of `root` and of the token in errors
  JobNode self;
  std::vector<int> ranks_of_nodes;    // number of ranks that each node must start, by node; empty: any number
  std::string engines;                // names and versions of the engines; must be equal on all nodes
  std::vector<std::string> settings;  // "train.steps = 50"; must be equal on all nodes, in the same order
  double join_seconds = 60;           // time limit for all nodes to join
  double name_seconds = 30;           // time limit for the host name of `root` to become known
  double fault_seconds = 5;           // time from a fault to its report, so that faults of later nodes are included
  // Called every `on_wait_seconds` with the missing nodes or the obstacle: "node 1", "node 0: ... does not answer".
  std::function<void(const std::string& what)> on_wait = [](const std::string&) {};
  double on_wait_seconds = 10;
  double heartbeat_seconds = 3;                  // a node silent for longer has failed; must be equal on all nodes
  size_t most_queued_bytes = size_t{256} << 20;  // a node for which more bytes are queued has failed
};

// Blocks until all nodes have joined, and returns the control channel. Errors:
// * ConfigError, on every node that has joined, with all problems of all nodes: duplicate numbers, differing settings,
//   engines and numbers of nodes. If there is such a problem, missing nodes are listed with it.
// * ConfigError if the host name of `root` is unknown, if `root` is not an address of node 0's host, if its port is
//   taken, or if `root` is not a loopback address in a job that stays on this host.
// * RunError on every node that has joined if the only problem is that nodes are missing.
// * RunError on a node that does not reach node 0 in time.
// * CommError on a node to which node 0 sends a wrong list of nodes.
//
// Until node 0 has proved that it has the keys, none of its messages makes this function throw, not even a refusal. The
// node connects again until the deadline, and then reports the failure of the connection that came furthest. After
// joining only node 0 keeps the keys, to refuse late nodes.
//
// job_control.h describes progress and node failures. When node 0 fails, all other nodes receive its failure and no
// further events. A live node that counts as failed receives its own failure, if it can be reached, and no further
// events. The destructor waits up to a second for the last messages to reach the other hosts.
std::unique_ptr<JobControl> join_job(const JoinOptions& options);

// Returns the control channel of a job of one node.
std::unique_ptr<JobControl> make_solo_job(JobNode self);

}  // namespace braid::control
