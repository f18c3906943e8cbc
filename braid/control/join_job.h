// Joins the nodes of a job: node 0 listens, all others connect to it (docs/many_hosts.md has the protocol).
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
  JobAddress root;                      // of node 0, which listens there and nowhere else
  std::shared_ptr<const JobKeys> keys;  // of the job's token and its attempt: only equal ones meet
  bool on_this_host = false;            // the token is this host's own (job_token.h), so node 0 must be on loopback
  std::string root_key = "root", token_key = "token";  // how errors name these two
  JobNode self;
  std::vector<int> ranks_of_nodes;    // that each must start, this one too; empty: any number
  std::string engines;                // their names and versions, which must be equal on all nodes
  std::vector<std::string> settings;  // which must be equal too, "train.steps = 50", in the same order
  double join_seconds = 60;           // after which who has not come is missing
  double name_seconds = 30;           // after which a host that nobody knows by name is refused
  double fault_seconds = 5;           // for others to come, so that what is wrong with them is said too
  // Is told now and then, and first after so many seconds, what is waited for: "node 1", "node 0: ... does not answer".
  std::function<void(const std::string& what)> on_wait = [](const std::string&) {};
  double on_wait_seconds = 10;
  double heartbeat_seconds = 3;                  // after which who is silent is lost; equal on all nodes
  size_t most_queued_bytes = size_t{256} << 20;  // who lets more than that wait for it is lost
};

// Blocks until all nodes have joined. Throws ConfigError, on every node that has joined, with all problems of all
// nodes: duplicate numbers, differing settings, engines and numbers of nodes, and missing nodes. Also throws it if the
// host's name is unknown, the address is not node 0's to listen on, or it is not a loopback address though the job
// stays on this host. Throws RunError if node 0 is not reached in time, and on every node that has joined if others are
// missing and nothing else is wrong. Until node 0 has proved that it has the keys, none of its messages ends a node,
// not even a refusal: the node reconnects until the deadline and then reports why the last attempt failed. Only node 0
// keeps the keys, to refuse late nodes.
//
// job_control.h describes progress and node failures. When node 0 fails, all others receive that and nothing more. A
// live node that counts as failed is notified of that, if it can be reached, and receives nothing more. The destructor
// waits up to a second until the last messages have reached the other hosts.
std::unique_ptr<JobControl> join_job(const JoinOptions& options);

// A job of one node.
std::unique_ptr<JobControl> make_solo_job(JobNode self);

}  // namespace braid::control
