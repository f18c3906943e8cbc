// Launches ranks as processes on the nodes of a job. Each node starts its own ranks; all ranks form one world.
#pragma once

#include <string>
#include <vector>

#include "braid/launch/job_rounds.h"
#include "braid/launch/launcher.h"

namespace braid {

// A launcher of ranks on all nodes of a job. All nodes call run(), and each forks its own ranks. run() has the
// same result on every node: the values of all ranks, or one error. process_ranks.h describes signals and the rules of
// forking, which hold on each host.
//
// When a rank is killed or exits, its host reports that to all nodes. Node 0 reports a rank that hangs. Then the ranks
// of all hosts end, and every node throws the same CommError. The error names the rank, its host, its activity, and
// the process of a rank that was killed or exited. When a node fails, all other nodes throw a CommError that names
// it.
//
// A rank returns at most kMostReturned bytes. A longer value is an InternalError.
class HostsLauncher final : public Launcher {
 public:
  static constexpr size_t kMostReturned = size_t{60} << 20;

  struct Options {
    std::vector<int> node_of_rank;  // node of each rank of the world
    std::string address;            // address of this host that the ranks of other hosts can reach
    CommEngine engine = CommEngine::Tcp;
    double heartbeat_seconds = LaunchSpec().heartbeat_seconds;  // the job's (join_job.h)
    std::vector<int> host_of_rank = {};                         // empty: each node is a host
  };

  // REQUIRES: `rounds` outlives this.
  HostsLauncher(launch::JobRounds& rounds, Options options);

  std::vector<std::string> run(int num_ranks, const Body& body, const LaunchOptions& options) const override;

 private:
  launch::JobRounds& rounds_;
  Options options_;
};

// A launcher of process ranks on one host that uses an engine for several hosts, over the loopback interface.
class LoopbackLauncher final : public Launcher {
 public:
  // `engine` is Tcp or Gloo.
  explicit LoopbackLauncher(CommEngine engine) : engine_(engine) {}

  std::vector<std::string> run(int num_ranks, const Body& body, const LaunchOptions& options) const override;

 private:
  const CommEngine engine_;
};

// Returns the node of each rank. Each node has a block of JobNode::num_ranks consecutive ranks, so neighbouring ranks,
// which the inner axes of a mesh connect, share a host.
std::vector<int> nodes_of_ranks(const std::vector<control::JobNode>& nodes);

}  // namespace braid
