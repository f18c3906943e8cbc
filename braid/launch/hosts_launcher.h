// Ranks as processes of several hosts: each node of a job starts its own, and all are one world over Gloo.
#pragma once

#include <string>
#include <vector>

#include "braid/comm/gloo/make_gloo_world.h"
#include "braid/launch/job_rounds.h"
#include "braid/launch/launcher.h"

namespace braid {

// Called on all nodes of a job, each of which forks the ranks that are its own; what ranks return or throw comes home
// to every node, the same everywhere. Signals and process_ranks.h's rules of forking are as there, on each host.
//
// When a rank is killed, exits or hangs, its host's supervisor says so to all, the ranks of all hosts end, and each
// node throws the same CommError, which names rank, host, process, and what it was doing. When a node is lost, all
// others throw a CommError that names it.
//
// A rank returns at most kMostReturned bytes: where it would more, an InternalError is thrown.
class HostsLauncher final : public Launcher {
 public:
  static constexpr size_t kMostReturned = size_t{60} << 20;

  struct Options {
    std::vector<int> node_of_rank;  // by rank of the world
    std::string address;            // of this host, that the other hosts' ranks reach
    ReductionOrder sums = ReductionOrder::Tree;
    double heartbeat_seconds = LaunchSpec().heartbeat_seconds;  // of the job (join_job.h)
  };

  // `rounds` outlives this.
  HostsLauncher(launch::JobRounds& rounds, Options options) : rounds_(rounds), options_(std::move(options)) {}

  std::vector<std::string> run(int num_ranks, const Body& body, const LaunchOptions& options) const override;

 private:
  launch::JobRounds& rounds_;
  const Options options_;
};

// So many ranks for each node, one after another: neighbouring ranks, which the inner axes of a mesh connect, share a
// host.
std::vector<int> nodes_of_ranks(const std::vector<control::JobNode>& nodes);

}  // namespace braid
