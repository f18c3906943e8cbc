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

// The error for a signal that a node received before its ranks ran. what() is a sentence for the user.
struct StoppedBeforeRanks : std::runtime_error {
  StoppedBeforeRanks(int signal, const std::string& sentence) : std::runtime_error(sentence), signal(signal) {}
  int signal;
};

// A launcher that starts the ranks of a run once every node is ready. run() begins with an exchange in which each node
// reports whether it is ready. If a node called refuse(), run() throws its error on all nodes before any rank starts,
// as a ConfigError or a RunError that names the node. Otherwise, if StopSignals received a signal on some node, run()
// throws StoppedBeforeRanks on all nodes.
class ReadyLauncher final : public Launcher {
 public:
  // REQUIRES: `job` outlives this.
  explicit ReadyLauncher(Job& job) : job_(job) {}

  std::vector<std::string> run(int num_ranks, const Body& body, const LaunchOptions& options) const override;

  // Called instead of run() by a node that cannot take part because of `why`. Waits until all nodes have received it.
  // Does nothing if run() has begun: errors thrown by ranks are thrown on all nodes.
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

// A node's report after a failure: true if the system killed one of its ranks for lack of memory.
struct MemoryKill {
  bool on_this_node = false;
};
template <class Pack>
void members(Pack& pack, MemoryKill& kill) {
  pack(kill.on_this_node);
}

// Node 0's decision whether the run restarts, and from which checkpoint; empty: from the beginning.
struct NextAttempt {
  bool again = false;
  std::string checkpoint;
};
template <class Pack>
void members(Pack& pack, NextAttempt& next) {
  pack(next.again, next.checkpoint);
}

// Node 0's decision about the start of a run. If node 0 refuses the run, `why` is the reason. Otherwise the other
// fields are the checkpoint to resume from, the first weights, and the mark of the run's folder.
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
