// Starts the ranks of a job's run once every node is ready.
#pragma once

#include <exception>
#include <stdexcept>

#include "braid/cli/job.h"

namespace braid::cli {

// A signal came to some node before its ranks ran. what() is a sentence for the user.
struct StoppedBeforeRanks : std::runtime_error {
  StoppedBeforeRanks(int signal, const std::string& sentence) : std::runtime_error(sentence), signal(signal) {}
  int signal;
};

// run() begins with a round in which all nodes say whether they are ready. Throws on all nodes, before any rank starts,
// what refuse() was called with on one of them, as a ConfigError or a RunError that names it, else StoppedBeforeRanks
// where StopSignals have received one on some node.
class ReadyLauncher final : public Launcher {
 public:
  // `job` outlives this.
  explicit ReadyLauncher(Job& job) : job_(job) {}

  std::vector<std::string> run(int num_ranks, const Body& body, const LaunchOptions& options) const override;

  // In place of run(), by a node that cannot take part for `why`; waits until all know. Nothing where run() has begun:
  // what ranks throw, all nodes throw.
  void refuse(const std::exception& why) const;

 private:
  Job& job_;
  mutable bool agreed_ = false;
};

}  // namespace braid::cli
