// Rounds of messages between the nodes of a job. All nodes pass through the same rounds in the same order, each at its
// own pace, and receive in a round the messages sent in it. Launching ranks is a round; so is agreeing on the next
// step. Between two rounds a node may be busy for any time, for example with its data: a HeartbeatThread answers and
// sends heartbeats for it.
//
// Messages of other nodes are not trusted: all of them have passed the reader of round_message.h.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "braid/control/job_control.h"
#include "braid/launch/heartbeat_thread.h"
#include "braid/base/packed.h"
#include "braid/launch/round_message.h"

namespace braid::launch {

struct RoundEvent {
  int node = 0;
  RoundBody word;
};

class JobRounds {
 public:
  // `control` outlives this. A node that is busy and makes no progress is lost (heartbeat_thread.h); 0: it never is for
  // that.
  explicit JobRounds(control::JobControl& control, double progress_seconds = 0);
  ~JobRounds();

  // In a round.
  control::JobControl& control() { return control_; }
  int node() const { return control_.node(); }
  const std::vector<control::JobNode>& nodes() const { return control_.nodes(); }

  // Begins the next; what was said in those before and is not heard yet never is. From here on it is the caller who
  // listens and beats.
  void begin();
  // The round is over, and the caller may be busy.
  void end();
  // There is no next round: nobody listens or beats any more.
  void leave() { heartbeats_.reset(); }
  int number() const { return number_; }
  // To all nodes, this one too, in this round.
  void say(RoundBody word);
  // Returns the messages of this round since the last call, in the same order on all nodes. Does not block.
  std::vector<RoundEvent> heard();
  // Goes to node 0 with the next heartbeat; its round is this one.
  void report(RanksReport report);
  // Returns the newest report() of each node since the last call, by node. Node 0 only.
  std::vector<std::optional<RanksReport>> take_reports();
  // Returns the node failure, "node 1 on h1 was silent for 3.0 s"; empty if there is none. It is final.
  const std::string& loss() const { return loss_; }
  int lost_node() const { return lost_node_; }
  // By all nodes alike: `node` has said what it cannot have to say here, and is lost for `why`, "has said ...".
  void lose(int node, const std::string& why);

  // A round of its own: every node contributes a value that packed() knows, and gets those of all, by node. Blocks.
  // Throws CommError when a node is lost. A node is lost whose contribution cannot be read or for which
  // contribution_fault(), found beside its type, says what is wrong with it, "has said ...".
  template <class Value>
  std::vector<Value> exchange(const Value& own);

 private:
  struct Waiting {
    int round;
    size_t bytes;  // of memory
    RoundEvent said;
  };

  std::string judge(const control::JobEvent& event);
  void take(std::vector<control::JobEvent> events);
  std::vector<std::string> exchange_bytes(std::string own);  // within the round, which it begins
  void take(std::vector<std::optional<std::string>>& all, RoundEvent& said);
  [[noreturn]] void throw_loss() const;

  control::JobControl& control_;
  const double progress_seconds_;
  std::optional<HeartbeatThread> heartbeats_;  // between rounds
  int number_ = 0;
  std::deque<Waiting> waiting_;        // not heard yet
  std::vector<size_t> waiting_bytes_;  // of them and of what has come since, by node
  std::vector<std::optional<RanksReport>> reports_;
  double begun_ = 0;  // the round, in seconds of the clock
  std::string loss_;
  int lost_node_ = -1;
};

template <class Value>
std::vector<Value> JobRounds::exchange(const Value& own) {
  const auto all = exchange_bytes(packed(own));
  std::vector<Value> values;
  for (int node = 0; node < static_cast<int>(all.size()); ++node) {
    auto value = unpacked<Value>(all[static_cast<size_t>(node)]);
    std::string fault = value ? "" : "has said what is no answer in this round";
    if constexpr (requires { contribution_fault(*value); }) {
      if (value) fault = contribution_fault(*value);
    }
    if (!fault.empty()) lose(node, fault);
    if (!fault.empty()) throw_loss();
    values.push_back(std::move(*value));
  }
  end();
  return values;
}

}  // namespace braid::launch
