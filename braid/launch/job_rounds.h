// What the nodes of a job say in rounds: all nodes pass through the same rounds in the same order, each at its own
// pace, and hear in a round what was said in it. Launching ranks is a round; so is agreeing on what comes next. It does
// not know what is said.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "braid/control/job_control.h"

namespace braid {

// Between two rounds a node may be busy, with its data for one thing, and says nothing meanwhile.
inline constexpr double kPreparationSeconds = 3600;

struct Said {
  int node = 0;
  std::vector<std::string> words;
};

class JobRounds {
 public:
  // `control` outlives this.
  explicit JobRounds(JobControl& control) : control_(control) {}

  JobControl& control() { return control_; }
  int node() const { return control_.node(); }
  const std::vector<JobNode>& nodes() const { return control_.nodes(); }

  // Begins the next; what was said in those before and is not heard yet never is.
  void begin();
  // What has begun is not, as long as nothing was said or heard in it: the next round has its number.
  void take_back() { --number_; }
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
  void take();

  JobControl& control_;
  int number_ = 0;
  std::deque<std::pair<int, Said>> early_;  // with their rounds
  std::vector<std::string> progress_;
  std::string loss_;
  int lost_node_ = -1;
};

}  // namespace braid
