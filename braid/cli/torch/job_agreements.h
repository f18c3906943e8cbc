// Messages that the nodes of a job exchange between launches, one struct for each JobRounds::exchange(). Fields that
// only node 0 fills are empty in the messages of other nodes. contribution_fault() validates a message.
#pragma once

#include <csignal>
#include <exception>
#include <stdexcept>
#include <string>

#include "braid/base/text.h"
#include "braid/cli/torch/job.h"

namespace braid::cli {

// Starts the ranks of a job's run once every node is ready.

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

// The signal that a node has received; 0: none.
struct SignalOfNode {
  int signal = 0;
};
template <class Pack>
void members(Pack& pack, SignalOfNode& of) {
  pack(of.signal);
}
inline std::string contribution_fault(const SignalOfNode& of) {
  return 0 <= of.signal && of.signal < NSIG ? "" : cat("has named signal ", of.signal, ", which there is not");
}

// By node 0: whether the run begins again, and from which checkpoint; empty: from the beginning.
struct NextAttempt {
  bool again = false;
  std::string checkpoint;
};
template <class Pack>
void members(Pack& pack, NextAttempt& next) {
  pack(next.again, next.checkpoint);
}

// By node 0: that it refuses the run, and why; else what the run goes on from, its first weights, and the mark of its
// folder.
struct AgreedStart {
  bool refused = false;
  std::string why, resume, init, mark;
};
template <class Pack>
void members(Pack& pack, AgreedStart& start) {
  pack(start.refused, start.why, start.resume, start.init, start.mark);
}

// A node's view of node 0's folder. `barred` is the reason why the node cannot write there; empty if it can.
struct FolderSight {
  bool seen = true;
  std::string barred;
};
template <class Pack>
void members(Pack& pack, FolderSight& sight) {
  pack(sight.seen, sight.barred);
}

// A node's answer before ranks start: ready, or the reason why not. Carries the signal that the node has received.
struct Readiness {
  bool ready = true, user_is_wrong = false;
  std::string why;
  SignalOfNode received;
};
template <class Pack>
void members(Pack& pack, Readiness& readiness) {
  pack(readiness.ready, readiness.user_is_wrong, readiness.why, readiness.received);
}
inline std::string contribution_fault(const Readiness& readiness) { return contribution_fault(readiness.received); }

}  // namespace braid::cli
