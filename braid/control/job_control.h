// The control channel between the nodes of a job. A node is one command: a host, or a rank where a launcher starts
// each. All nodes receive all broadcasts in one order.
//
// A job of one node has a JobControl too, which receives its own broadcasts. It has no threads: its owner polls the
// descriptors together with others and calls advance(). An owner that does not within the heartbeat's time counts as
// failed.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace braid::control {

struct JobNode {
  std::string host;   // its name, as it calls itself
  int num_ranks = 1;  // that it starts
};

struct JobEvent {
  enum class Kind {
    Said,      // by `node`, this one too: `bytes`
    Progress,  // heard by node 0 only: the newest report_progress() of `node`
    Lost,      // `node` has closed its connection or been silent too long: `bytes` says which and for how long
  };
  Kind kind = Kind::Said;
  int node = 0;
  std::string bytes;
};

// Validates a message from `event.node`. Returns the fault as the end of the sentence "node 1 on h1 "; empty if there
// is none. An exception counts as a fault of the node, too.
using MessageValidator = std::function<std::string(const JobEvent& event)>;

class JobControl {
 public:
  virtual ~JobControl() = default;

  virtual int node() const = 0;
  virtual const std::vector<JobNode>& nodes() const = 0;

  // To all nodes, this one included: they hear what all say in one order. Never blocks.
  virtual void say(const std::string& bytes) = 0;
  // Goes to node 0 with the next heartbeat; an older one that has not gone is forgotten.
  virtual void report_progress(const std::string& bytes) = 0;

  // Sets the validator that advance() calls for every message of another node, before anybody receives it; on node 0
  // before it is relayed. The sender of an invalid message counts as failed; on a member that is node 0, which relayed
  // it.
  virtual void judge_by(MessageValidator) {}
  // The caller has found that another node said what cannot be, though each message was well-formed. On node 0 that
  // node is lost and all hear why; on the others nothing happens, because they have heard the same and say the same.
  virtual void lose(int, const std::string&) {}

  // Adds the descriptors to wait for, and says how long at most, in milliseconds.
  virtual int watch(std::vector<pollfd>& watched) const = 0;
  // Reads and writes what can be without waiting, sends heartbeats that are due, and returns what was heard.
  virtual std::vector<JobEvent> advance() = 0;
  // In a forked child: closes its copies of descriptors and says nothing to anybody.
  virtual void leave_to_child() = 0;
};

}  // namespace braid::control
