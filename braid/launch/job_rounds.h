// What the nodes of a job say in rounds: all nodes pass through the same rounds in the same order, each at its own
// pace, and hear in a round what was said in it. Launching ranks is a round; so is agreeing on what comes next. Between
// two rounds a node may be busy for as long as it likes, with its data for one thing: a StandIn listens and beats for
// it. It does not know what is said.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "braid/control/job_control.h"
#include "braid/launch/stand_in.h"

namespace braid {

struct Said {
  int node = 0;
  std::vector<std::string> words;
};

class JobRounds {
 public:
  // `control` outlives this. A node that is busy and makes no progress is lost (stand_in.h); 0: it never is for that.
  explicit JobRounds(JobControl& control, double progress_seconds = 0);

  // In a round.
  JobControl& control() { return control_; }
  int node() const { return control_.node(); }
  const std::vector<JobNode>& nodes() const { return control_.nodes(); }

  // Begins the next; what was said in those before and is not heard yet never is. From here on it is the caller who
  // listens and beats.
  void begin();
  // The round is over, and the caller may be busy.
  void end();
  // There is no next round: nobody listens or beats any more.
  void leave() { stand_in_.reset(); }
  int number() const { return number_; }
  // To all nodes, this one too, in this round.
  void say(std::vector<std::string> words);
  // What has been said in this round since the last call, in the same order on all nodes. Without waiting.
  std::vector<Said> heard();
  // Of node 0: the newest report_progress() of each node, by node, since the last call; empty texts where none came.
  std::vector<std::string> take_progress();
  // Which node is lost and why, "node 1 on h1 was silent for 3.0 s"; empty: none is. It stays lost.
  const std::string& loss() const { return loss_; }
  int lost_node() const { return lost_node_; }

  // A round of its own: every node says its words, and gets those of all, by node. Blocks. Throws CommError when a node
  // is lost.
  std::vector<std::vector<std::string>> exchange(std::vector<std::string> words);

 private:
  void take(std::vector<JobEvent> events);

  JobControl& control_;
  const double progress_seconds_;
  std::optional<StandIn> stand_in_;  // between rounds
  int number_ = 0;
  std::deque<std::pair<int, Said>> early_;  // with their rounds
  std::vector<std::string> progress_;
  std::string loss_;
  int lost_node_ = -1;
};

}  // namespace braid
