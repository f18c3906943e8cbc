// Rounds of messages between the nodes of a job. All nodes pass through the same rounds in the same order, each at its
// own pace. In each round a node receives the messages sent in that round. Launching ranks is a round; so is agreeing
// on the next step. Between two rounds a node may be busy for any time, for example with its data. A HeartbeatThread
// then answers and sends heartbeats for the node.
//
// Messages of other nodes are not trusted: RoundReader (round_message.h) validates all of them.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "braid/base/packed.h"
#include "braid/control/job_control.h"
#include "braid/launch/heartbeat_thread.h"
#include "braid/launch/round_message.h"

namespace braid::launch {

struct RoundEvent {
  int node = 0;
  RoundBody body;
};

class JobRounds {
 public:
  // REQUIRES: `control` outlives this. A node that is busy between rounds and makes no progress stops its heartbeats
  // after ten times `progress_seconds` (heartbeat_thread.h), and so fails; 0: never.
  explicit JobRounds(control::JobControl& control, double progress_seconds = 0);
  ~JobRounds();

  // REQUIRES: a round is open.
  control::JobControl& control() { return control_; }
  int node() const { return control_.node(); }
  const std::vector<control::JobNode>& nodes() const { return control_.nodes(); }

  // Begins the next round. Discards messages of earlier rounds that take_events() has not returned. Until end() the
  // caller receives messages and sends heartbeats: it polls control() and calls take_events().
  void begin();
  // Ends the round. The caller may be busy now: a HeartbeatThread takes over.
  void end();
  // Called after the last round: stops the HeartbeatThread. This node receives no more messages and sends no more
  // heartbeats.
  void leave() { heartbeats_.reset(); }
  int number() const { return number_; }
  // Sends `body` to all nodes, including this one, in this round.
  void broadcast(RoundBody body);
  // Returns the messages of this round since the last call, in the same order on all nodes. Does not block.
  std::vector<RoundEvent> take_events();
  // Sends `report` to node 0 with the next heartbeat. Sets `report.round` to this round.
  void report(RanksReport report);
  // Returns the newest report() of each node since the last call, by node. Node 0 only.
  std::vector<std::optional<RanksReport>> take_reports();
  // Returns the first node failure, "node 1 on h1 was silent for 3.0 s"; empty if there is none.
  const std::string& loss() const { return loss_; }
  // Returns the node of loss(); -1 if there is none.
  int lost_node() const { return lost_node_; }
  // Fails `node` because it has sent a message that is impossible in this round. `why` is the fault, "has sent ...".
  // All nodes receive the same messages, so all make the same call.
  void fail_node(int node, const std::string& why);

  // Runs a round in which every node contributes a value of a type that packed() supports. Returns the values of all
  // nodes, by node. Collective. Blocks. Throws CommError if a node fails.
  //
  // A node fails if its contribution cannot be read. The namespace of Value may have a function
  // contribution_fault(), which is called for each value. It returns "" for a valid value. Otherwise it returns the
  // fault, "has sent ...", for which the node fails.
  template <class Value>
  std::vector<Value> exchange(const Value& own);

 private:
  struct Waiting {
    int round;
    size_t bytes;  // memory that the message uses
    RoundEvent event;
  };

  std::string judge(const control::JobEvent& event);
  void take(std::vector<control::JobEvent> events);
  std::vector<std::string> exchange_bytes(std::string own);  // begins the round and does not end it
  void take(std::vector<std::optional<std::string>>& all, RoundEvent& event);
  [[noreturn]] void throw_loss() const;

  control::JobControl& control_;
  const double progress_seconds_;
  std::optional<HeartbeatThread> heartbeats_;  // set between rounds only
  int number_ = 0;
  std::deque<Waiting> waiting_;  // messages that take_events() has not returned
  // By sender: memory of waiting_, and of messages received after the last take_events().
  std::vector<size_t> waiting_bytes_;
  std::vector<std::optional<RanksReport>> reports_;
  double begun_ = 0;  // when the round began (now_seconds())
  std::string loss_;
  int lost_node_ = -1;
};

template <class Value>
std::vector<Value> JobRounds::exchange(const Value& own) {
  const auto all = exchange_bytes(packed(own));
  std::vector<Value> values;
  for (int node = 0; node < static_cast<int>(all.size()); ++node) {
    auto value = unpacked<Value>(all[static_cast<size_t>(node)]);
    std::string fault = value ? "" : "has sent a malformed contribution";
    if constexpr (requires { contribution_fault(*value); }) {
      if (value) fault = contribution_fault(*value);
    }
    if (!fault.empty()) fail_node(node, fault);
    if (!fault.empty()) throw_loss();
    values.push_back(std::move(*value));
  }
  end();
  return values;
}

}  // namespace braid::launch
