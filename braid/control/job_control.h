// The control channel between the nodes of a job. A node is one command: it starts the ranks of a host, or a single
// rank if a launcher starts one command for each rank. All nodes receive all broadcasts in the same order.
//
// A job of one node has a JobControl too, which receives its own broadcasts. A JobControl has no threads: its owner
// polls the descriptors of watch() together with others and calls advance(). A node whose owner does not call advance()
// within the heartbeat time counts as failed.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace braid::control {

struct JobNode {
  std::string host;   // host name as the node reports it
  int num_ranks = 1;  // number of ranks that the node starts
};

struct JobEvent {
  enum class Kind {
    Broadcast,  // `node`, which may be this node, has broadcast `bytes`
    Progress,   // node 0 only: `bytes` is the newest report_progress() of `node`
    Lost,       // `node` has failed: `bytes` is the reason, such as "was silent for 3.0 s"
  };
  Kind kind = Kind::Broadcast;
  int node = 0;
  std::string bytes;
};

// Validates a message from `event.node`. Returns an empty string if the message is valid, and otherwise a predicate
// about the node, such as "has sent an outcome of rank 99 where there are 4". If the validator throws, the message
// counts as invalid, too.
using MessageValidator = std::function<std::string(const JobEvent& event)>;

class JobControl {
 public:
  virtual ~JobControl() = default;

  virtual int node() const = 0;
  virtual const std::vector<JobNode>& nodes() const = 0;

  // Broadcasts `bytes` to all nodes, including this one. Never blocks.
  virtual void broadcast(const std::string& bytes) = 0;
  // Sends `bytes` to node 0 with the next heartbeat. Replaces an older report that has not been sent.
  virtual void report_progress(const std::string& bytes) = 0;

  // Sets the validator of messages received from other nodes. advance() calls the validator before it returns a
  // message, and on node 0 before it relays the message. On node 0, the sender of an invalid message counts as failed.
  // On any other node, node 0 counts as failed, because it relayed the message.
  virtual void set_validator(MessageValidator) {}
  // Reports that another node has sent a message that is well-formed but impossible in the current state of the job. If
  // the caller is node 0, the reported node counts as failed, and all nodes receive the reason. On other nodes the call
  // does nothing: node 0 receives the same messages, so its owner makes the same call.
  virtual void fail_node(int, const std::string&) {}

  // Adds the descriptors to poll. Returns the timeout for poll(2) in milliseconds.
  virtual int watch(std::vector<pollfd>& watched) const = 0;
  // Reads and writes without blocking, sends a heartbeat if one is due, and returns the events received.
  virtual std::vector<JobEvent> advance() = 0;
  // Called in a forked child. Closes its copies of the descriptors and sends nothing.
  virtual void leave_to_child() = 0;
};

}  // namespace braid::control
