// One node's part in a launch: what its ranks say goes to the other nodes, and what these say to its ranks. It does not
// start ranks.
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

// By a node that will not launch its ranks, in the round in which the others do: they fail, and say why.
void send_refusal(JobRounds& rounds, const std::string& why);

class NodeAgent final : public SupervisorDelegate {
 public:
  // All of it outlives this. A round has begun, of which this is all. `ranks` are those of this node, in the order in
  // which they are started.
  // A rank of which node 0 sees no sign for `progress_seconds` hangs; 0: however long.
  NodeAgent(JobRounds& rounds, comm::RankBoard& board, const std::vector<int>& node_of_rank, double progress_seconds);

  int watch(std::vector<pollfd>& watched) const override { return rounds_.control().watch(watched); }
  void advance(Supervisor& supervisor) override;
  bool tells_end(Supervisor& supervisor, int place) override;
  void look(Supervisor& supervisor, const std::vector<RankSample>& signs) override;
  bool goes_on() const override;
  void leave_to_child() override { rounds_.control().leave_to_child(); }

  // The first failure of the job, as all nodes have heard it.
  const std::optional<comm::Failure>& failure() const { return failure_; }
  // By rank of the world: how it ended; empty where nobody knows.
  const std::vector<std::string>& outcomes() const { return outcomes_; }
  const std::vector<int>& ranks_here() const { return ranks_here_; }

 private:
  // The bytes that a rank has written.
  struct Line {
    control::FrameReader reader;
    size_t read = 0;  // bytes that the reader has had
    bool ended = false, broken = false;
  };
  struct Question {
    int place;
    int64_t number;
  };

  void hear(Supervisor& supervisor, int place);
  void take(Supervisor& supervisor, int place, RankFrame& frame);
  void take_set(SetRequest& sets);
  void take_end(int place, EndReport& ends);
  void take_question(Supervisor& supervisor, int place, const GetRequest& asks);
  void listen_to_nodes(Supervisor& supervisor);
  std::string take(Supervisor& supervisor, RoundEvent& said);
  std::string take_value(Supervisor& supervisor, int node, ValueSet& set);
  std::string take_failure(int node, const comm::Failure& failure);
  std::string take_end(int node, RankEnded& ended);
  std::string take_all_ended(int node);
  bool is_rank_of(int node, int rank) const;
  void answer(Supervisor& supervisor, const std::string& key);
  void tell_of_failure();
  void tell_of_loss();
  bool all_at_end() const;
  void tell_of_end(const Supervisor& supervisor);
  void look_at_all();

  JobRounds& rounds_;
  comm::RankBoard& board_;
  const std::vector<int>& node_of_rank_;
  std::vector<int> ranks_here_;
  std::vector<Line> lines_;  // by place
  std::map<std::string, std::string> values_;
  std::vector<size_t> value_bytes_;  // by node: of the values that it has set
  std::multimap<std::string, Question> open_;
  std::vector<std::string> outcomes_;
  std::optional<comm::Failure> failure_;
  bool told_of_failure_ = false, told_of_end_ = false;
  std::vector<bool> at_end_;  // by node: its ranks are gone
  HangDetector hangs_;
  std::vector<RankSample> signs_;    // of all ranks
  std::vector<std::string> states_;  // of all ranks, in words
};

}  // namespace braid::launch
