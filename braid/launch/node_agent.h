// The agent of one node in a launch. It relays messages of the node's ranks to the other nodes, and messages of other
// nodes to the ranks. It does not start ranks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "braid/comm/rank_board.h"
#include "braid/launch/hang_detector.h"
#include "braid/launch/job_rounds.h"
#include "braid/launch/rank_frames.h"
#include "braid/launch/supervisor.h"

namespace braid::launch {

// A node that refuses to launch its ranks calls this during the launch's round (job_rounds.h). The launch fails on all
// other nodes, with `why` in the error.
void send_refusal(JobRounds& rounds, const std::string& why);

class NodeAgent final : public SupervisorDelegate {
 public:
  // REQUIRES: the arguments outlive this; a round is open, and no other code uses that round. `node_of_rank[r]`
  // is the node that starts rank r of the world; the caller starts this node's ranks in ascending order. Node 0 counts
  // a rank as hung if it has received no sign of progress for `progress_seconds`; 0: never.
  NodeAgent(JobRounds& rounds, comm::RankBoard& board, const std::vector<int>& node_of_rank, double progress_seconds);

  int watch(std::vector<pollfd>& watched) const override { return rounds_.control().watch(watched); }
  void advance(Supervisor& supervisor) override;
  bool has_outcome(Supervisor& supervisor, int place) override;
  void look(Supervisor& supervisor, const std::vector<RankSample>& signs) override;
  bool has_work() const override;
  void leave_to_child() override { rounds_.control().leave_to_child(); }

  // Returns the first failure of the job, as all nodes have received it. Its text also names the other
  // ranks that died before their node had received it: MPI aborts the peers of a killed rank, and such an abort may be
  // reported before the kill.
  std::optional<comm::Failure> failure() const;
  // Returns the outcomes (rank_outcome.h) by rank of the world; empty for a rank whose outcome is unknown.
  const std::vector<std::string>& outcomes() const { return outcomes_; }
  const std::vector<int>& ranks_here() const { return ranks_here_; }

 private:
  // The stream of bytes from a rank.
  struct Line {
    control::FrameReader reader;
    size_t read = 0;  // number of bytes passed to the reader
    bool ended = false, broken = false;
  };
  struct Question {
    int place;
    int64_t number;
  };

  void receive(Supervisor& supervisor, int place);
  void take(Supervisor& supervisor, int place, RankFrame& frame);
  void take_set(SetRequest& sets);
  void take_end(int place, EndReport& ends);
  void take_question(Supervisor& supervisor, int place, const GetRequest& asks);
  void listen_to_nodes(Supervisor& supervisor);
  bool awaits_exits(const Supervisor& supervisor);
  std::string take(Supervisor& supervisor, RoundEvent& event);
  std::string take_value(Supervisor& supervisor, int node, ValueSet& set);
  std::string take_failure(int node, const comm::Failure& failure);
  std::string take_end(int node, RankEnded& ended);
  std::string take_all_ended(int node);
  bool is_rank_of(int node, int rank) const;
  void answer(Supervisor& supervisor, const std::string& key);
  void send_failure();
  void take_node_failure();
  bool all_at_end() const;
  void send_end(const Supervisor& supervisor);
  void look_at_all();

  JobRounds& rounds_;
  comm::RankBoard& board_;
  const std::vector<int>& node_of_rank_;
  std::vector<int> ranks_here_;
  std::vector<Line> lines_;  // by place
  std::map<std::string, std::string> values_;
  std::vector<size_t> value_bytes_;  // by node: memory of the values that the node has set
  std::multimap<std::string, Question> open_;
  std::vector<RoundEvent> events_;  // messages of all nodes that have not been handled
  double held_since_ = -1;          // when awaits_exits() first returned true (now_seconds()); -1: it has not
  std::vector<std::string> outcomes_;
  std::optional<comm::Failure> failure_;
  std::vector<comm::Failure> later_failures_;  // other ranks' own failures, received after failure_
  bool failure_sent_ = false, end_sent_ = false;
  std::vector<bool> has_failed_;  // by node: true if it has reported a failure
  std::vector<bool> at_end_;      // by node: true if all its ranks have ended
  HangDetector hangs_;
  std::vector<RankSample> signs_;    // of all ranks
  std::vector<std::string> states_;  // of all ranks, in words
};

}  // namespace braid::launch
