// What the nodes of a job tell each other between launches, one struct for each exchange (JobRounds::exchange()). Nodes
// that do not lead leave what only node 0 says empty. contribution_fault() says what is wrong with what a node has
// sent.
#pragma once

#include <csignal>
#include <string>

#include "braid/base/text.h"

namespace braid {

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

// Whether a node sees node 0's folder, and why it cannot write there; empty: it can.
struct FolderSight {
  bool seen = true;
  std::string barred;
};
template <class Pack>
void members(Pack& pack, FolderSight& sight) {
  pack(sight.seen, sight.barred);
}

// Whether a node is ready for its ranks, with the signal that it has received; else why not.
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

}  // namespace braid
