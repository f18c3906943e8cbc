// Messages that the nodes of a job exchange between launches, one struct for each JobRounds::exchange(). Fields that
// only node 0 fills are empty in the messages of other nodes. contribution_fault() validates a message.
#pragma once

#include <csignal>
#include <string>

#include "braid/base/text.h"

namespace braid::cli {

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
