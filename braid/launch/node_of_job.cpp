// Words of a round: "set" key value, "failed" rank reporter why, "ended" rank outcome, "gone".
#include "braid/launch/node_of_job.h"

#include <algorithm>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/launch/packed.h"
#include "braid/launch/supervisor.h"

namespace braid {
namespace {

constexpr const char* kFailed = "failed";
constexpr const char* kEnded = "ended";
constexpr const char* kGone = "gone";  // no rank of the node runs any more

}  // namespace

// What node 0 hears of a node's ranks with its heartbeats, in the order of its ranks.
struct NodeSigns {
  int round;  // that they are of
  std::vector<RankSigns> signs;
  std::vector<std::string> states;
};
template <class Pack>
void members(Pack& pack, NodeSigns& node) {
  pack(node.round, node.signs, node.states);
}

void say_refused(JobRounds& rounds, const std::string& why) {
  rounds.say(
      {kFailed, cat(-1), cat(-1), cat("node ", rounds.node(), " on ", rounds.nodes()[rounds.node()].host, ": ", why)});
}

NodeOfJob::NodeOfJob(JobRounds& rounds, RankBoard& board, const std::vector<int>& node_of_rank, double progress_seconds)
    : rounds_(rounds),
      board_(board),
      node_of_rank_(node_of_rank),
      outcomes_(node_of_rank.size()),
      at_end_(rounds.nodes().size()),
      hangs_(static_cast<int>(node_of_rank.size()), progress_seconds),
      signs_(node_of_rank.size(), RankSigns{.held_outside = true}),  // of whom nothing is heard yet: others wait for it
      states_(node_of_rank.size()) {
  for (int rank = 0; rank < static_cast<int>(node_of_rank.size()); ++rank) {
    if (node_of_rank[static_cast<size_t>(rank)] == rounds.node()) ranks_here_.push_back(rank);
  }
  lines_.resize(ranks_here_.size());
}

void NodeOfJob::advance(Supervisor& supervisor) {
  for (int place = 0; place < supervisor.num_ranks(); ++place) tells_end(supervisor, place);
  tell_of_failure();
  tell_of_end(supervisor);
  listen_to_nodes(supervisor);
  tell_of_loss();
}

bool NodeOfJob::tells_end(Supervisor& supervisor, int place) {
  const std::string& heard = supervisor.message(place);
  Line& line = lines_[static_cast<size_t>(place)];
  line.reader.add(std::string_view(heard).substr(std::exchange(line.read, heard.size())));
  while (const auto frame = next_frame(line.reader)) take(supervisor, place, *frame);
  return line.ended;
}

bool NodeOfJob::goes_on() const { return rounds_.lost_node() < 0 && !all_at_end(); }

bool NodeOfJob::all_at_end() const {
  return std::ranges::all_of(at_end_, [](bool gone) { return gone; });
}

void NodeOfJob::take(Supervisor& supervisor, int place, const Texts& frame) {
  if (frame.at(0) == kSet) rounds_.say({kSet, frame.at(1), frame.at(2)});
  if (frame.at(0) == kEnd) {
    rounds_.say({kEnded, cat(ranks_here_[static_cast<size_t>(place)]), frame.at(1)});
    lines_[static_cast<size_t>(place)].ended = true;
  }
  if (frame.at(0) == kGet) {
    // A rank asks one thing at a time: what it asked before it has given up.
    std::erase_if(open_, [&](const auto& question) { return question.second.place == place; });
    open_.emplace(frame.at(2), Question{place, frame.at(1)});
    if (!values_.contains(frame.at(2))) supervisor.say(place, frame_of({kNotYet, frame.at(1)}));
    answer(supervisor, frame.at(2));
  }
}

void NodeOfJob::answer(Supervisor& supervisor, const std::string& key) {
  const auto known = values_.find(key);
  if (known == values_.end()) return;
  const auto [first, last] = open_.equal_range(key);
  for (auto question = first; question != last; ++question) {
    supervisor.say(question->second.place, frame_of({kValue, question->second.number, known->second}));
  }
  open_.erase(first, last);
}

// Of this node's ranks; the others hear it, and this node too.
void NodeOfJob::tell_of_failure() {
  if (told_of_failure_ || failure_ || !board_.failed()) return;
  const Failure failure = *board_.failure();
  rounds_.say({kFailed, cat(failure.rank), cat(failure.reporter), failure.why});
  told_of_failure_ = true;
}

void NodeOfJob::tell_of_end(const Supervisor& supervisor) {
  if (told_of_end_ || supervisor.any_runs()) return;
  rounds_.say({kGone});
  told_of_end_ = true;
}

void NodeOfJob::listen_to_nodes(Supervisor& supervisor) {
  for (const Said& said : rounds_.heard()) take(supervisor, said);
}

void NodeOfJob::take(Supervisor& supervisor, const Said& said) {
  const std::string& word = said.words.at(0);
  if (word == kSet) {
    values_.emplace(said.words.at(1), said.words.at(2));
    answer(supervisor, said.words.at(1));
  } else if (word == kFailed && !failure_) {
    failure_ = Failure{std::stoi(said.words.at(1)), std::stoi(said.words.at(2)), said.words.at(3)};
    board_.fail(*failure_);
  } else if (word == kEnded) {
    outcomes_.at(static_cast<size_t>(std::stoi(said.words.at(1)))) = said.words.at(2);
  } else if (word == kGone) {
    at_end_[static_cast<size_t>(said.node)] = true;
  }
}

// What one rank says of another may follow from the loss: its connection was closed, it did not come. Who has heard
// that all are at their end may leave at once, and loses nobody.
void NodeOfJob::tell_of_loss() {
  if (all_at_end()) return;
  const bool in_doubt = failure_ && failure_->reporter >= 0 && failure_->reporter != failure_->rank;
  if (rounds_.lost_node() < 0 || (failure_ && !in_doubt)) return;
  const auto first = std::ranges::find(node_of_rank_, rounds_.lost_node());
  failure_ = Failure{static_cast<int>(first - node_of_rank_.begin()), -1, rounds_.loss()};
  board_.fail(*failure_);
}

void NodeOfJob::look(Supervisor& supervisor, const std::vector<RankSigns>& signs) {
  NodeSigns own{rounds_.number(), signs, {}};
  for (int place = 0; place < supervisor.num_ranks(); ++place) own.states.push_back(supervisor.state(place));
  rounds_.control().report_progress(packed(own));
  if (rounds_.node() != 0) return;
  std::vector<std::string> told = rounds_.take_progress();
  told[0] = packed(own);
  for (int node = 0; node < static_cast<int>(told.size()); ++node) {
    const auto heard = unpacked<NodeSigns>(told[static_cast<size_t>(node)]);
    if (!heard || heard->round != rounds_.number()) continue;  // of an earlier launch, or of the next
    size_t place = 0;
    for (size_t rank = 0; rank < node_of_rank_.size(); ++rank) {
      if (node_of_rank_[rank] != node || place >= heard->signs.size()) continue;
      signs_[rank] = heard->signs[place];
      states_[rank] = heard->states[place++];
    }
  }
  look_at_all();
}

// Its own supervisor kills what hangs, once it hears of the failure.
void NodeOfJob::look_at_all() {
  if (board_.failed()) return;
  const auto hung = hangs_.look(now_seconds(), signs_);
  if (!hung) return;
  const JobNode& node = rounds_.nodes()[static_cast<size_t>(node_of_rank_[static_cast<size_t>(*hung)])];
  board_.fail({*hung, *hung, cat("makes no progress on ", node.host, " (", joined(states_, "; "), ")")});
}

}  // namespace braid
