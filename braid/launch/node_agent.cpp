// Checks each message of another node against the ranks of that node. The sender of an impossible message counts as
// failed.
#include "braid/launch/node_agent.h"

#include <algorithm>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/launch/rank_outcome.h"
#include "braid/launch/supervisor.h"

namespace braid::launch {
namespace {

constexpr size_t kMostValueBytes = size_t{64} << 20;  // limit of all values that the ranks of one node set
constexpr size_t kValueBytes = 128;                   // memory that a value uses beside its bytes
constexpr size_t kMostSetBytes = size_t{1} << 20;     // limit of one value and its key
constexpr size_t kMostStateBytes = 1024;              // limit of the text of one rank's state
constexpr double kExitSeconds = 1;                    // limit of the wait for ranks that are exiting

}  // namespace

void send_refusal(JobRounds& rounds, const std::string& why) {
  const std::string& host = rounds.nodes()[static_cast<size_t>(rounds.node())].host;
  rounds.broadcast(RanksFailed{{-1, -1, cat("node ", rounds.node(), " on ", host, ": ", why)}});
}

NodeAgent::NodeAgent(JobRounds& rounds, comm::RankBoard& board, const std::vector<int>& node_of_rank,
                     double progress_seconds)
    : rounds_(rounds),
      board_(board),
      node_of_rank_(node_of_rank),
      value_bytes_(rounds.nodes().size()),
      outcomes_(node_of_rank.size()),
      has_failed_(rounds.nodes().size()),
      at_end_(rounds.nodes().size()),
      hangs_(static_cast<int>(node_of_rank.size()), progress_seconds),
      signs_(node_of_rank.size(),
             RankSample{.held_outside = true}),  // until its first sample a rank does not count as silent
      states_(node_of_rank.size()) {
  for (int rank = 0; rank < static_cast<int>(node_of_rank.size()); ++rank) {
    states_[static_cast<size_t>(rank)] = cat("rank ", rank, " not heard of yet");
    if (node_of_rank[static_cast<size_t>(rank)] == rounds.node()) ranks_here_.push_back(rank);
  }
  lines_.resize(ranks_here_.size());
}

void NodeAgent::advance(Supervisor& supervisor) {
  for (int place = 0; place < supervisor.num_ranks(); ++place) has_outcome(supervisor, place);
  send_failure();
  send_end(supervisor);
  listen_to_nodes(supervisor);
  take_node_failure();
}

bool NodeAgent::has_outcome(Supervisor& supervisor, int place) {
  Line& line = lines_[static_cast<size_t>(place)];
  if (line.broken) return false;
  try {
    receive(supervisor, place);
  } catch (const CommError& error) {
    const int rank = ranks_here_[static_cast<size_t>(place)];
    board_.fail({rank, rank, cat("its line ", error.failure().why)});
    line.broken = true;
  }
  return line.ended;
}

void NodeAgent::receive(Supervisor& supervisor, int place) {
  const std::string& received = supervisor.message(place);
  Line& line = lines_[static_cast<size_t>(place)];
  const bool fits = line.reader.add(std::string_view(received).substr(std::exchange(line.read, received.size())));
  while (auto frame = next_frame(line.reader)) take(supervisor, place, *frame);
  if (!fits) throw CommError({"the connection of a rank", -1, 0, "has a frame that is too long"});
}

bool NodeAgent::has_work() const { return rounds_.lost_node() < 0 && !all_at_end(); }

bool NodeAgent::all_at_end() const {
  return std::ranges::all_of(at_end_, [](bool gone) { return gone; });
}

void NodeAgent::take(Supervisor& supervisor, int place, RankFrame& frame) {
  if (auto* sets = std::get_if<SetRequest>(&frame)) {
    take_set(*sets);
  } else if (auto* ends = std::get_if<EndReport>(&frame)) {
    take_end(place, *ends);
  } else if (const auto* asks = std::get_if<GetRequest>(&frame)) {
    take_question(supervisor, place, *asks);
  } else {
    throw CommError({"the connection of a rank", -1, 0, "has an answer that only its supervisor gives"});
  }
}

void NodeAgent::take_set(SetRequest& sets) {
  if (sets.key.size() + sets.value.size() > kMostSetBytes) {
    throw CommError({"the connection of a rank", -1, 0, "sets a value that is too long"});
  }
  rounds_.broadcast(ValueSet{std::move(sets.key), std::move(sets.value)});
}

void NodeAgent::take_end(int place, EndReport& ends) {
  Line& line = lines_[static_cast<size_t>(place)];
  if (line.ended || !RankOutcome::complete(ends.outcome)) {
    throw CommError({"the connection of a rank", -1, 0, "sends no valid outcome"});
  }
  rounds_.broadcast(RankEnded{ranks_here_[static_cast<size_t>(place)], std::move(ends.outcome)});
  line.ended = true;
}

// A rank has one open request at a time. A new request means that the rank has given up the previous one.
void NodeAgent::take_question(Supervisor& supervisor, int place, const GetRequest& asks) {
  std::erase_if(open_, [&](const auto& question) { return question.second.place == place; });
  open_.emplace(asks.key, Question{place, asks.question});
  if (!values_.contains(asks.key)) supervisor.send(place, frame_of(GetAnswer{asks.question, std::nullopt}));
  answer(supervisor, asks.key);
}

void NodeAgent::answer(Supervisor& supervisor, const std::string& key) {
  const auto known = values_.find(key);
  if (known == values_.end()) return;
  const auto [first, last] = open_.equal_range(key);
  for (auto question = first; question != last; ++question) {
    supervisor.send(question->second.place, frame_of(GetAnswer{question->second.number, known->second}));
  }
  open_.erase(first, last);
}

// Broadcasts the failure of this node's ranks to all nodes, this one included.
void NodeAgent::send_failure() {
  if (failure_sent_ || failure_ || !board_.failed()) return;
  rounds_.broadcast(RanksFailed{*board_.failure()});
  failure_sent_ = true;
}

void NodeAgent::send_end(const Supervisor& supervisor) {
  if (end_sent_ || supervisor.any_runs()) return;
  rounds_.broadcast(RanksGone{});
  end_sent_ = true;
}

// A failure that another node reports may be the consequence of the death of a rank here. That death has happened
// before the message was sent, so the ranks that have died are reaped and reported before the message is handled.
void NodeAgent::listen_to_nodes(Supervisor& supervisor) {
  for (RoundEvent& event : rounds_.take_events()) events_.push_back(std::move(event));
  supervisor.reap();
  send_failure();
  if (awaits_exits(supervisor)) return;
  for (RoundEvent& event : std::exchange(events_, {})) {
    const std::string fault = take(supervisor, event);
    if (!fault.empty()) rounds_.fail_node(event.node, fault);
  }
}

// Returns true, for at most kExitSeconds, if another node has reported a failure while a rank here is exiting. Peers
// notice that a killed process has lost its memory (process_vm_readv) before its parent can reap it.
bool NodeAgent::awaits_exits(const Supervisor& supervisor) {
  const bool reported = std::ranges::any_of(events_, [this](const RoundEvent& event) {
    return event.node != rounds_.node() && std::holds_alternative<RanksFailed>(event.body);
  });
  if (!reported || failure_ || failure_sent_ || !supervisor.any_exits()) return false;
  if (held_since_ < 0) held_since_ = now_seconds();
  return now_seconds() - held_since_ < kExitSeconds;
}

// Returns the fault of the message; empty if it is valid. The functions below do the same.
std::string NodeAgent::take(Supervisor& supervisor, RoundEvent& event) {
  if (auto* set = std::get_if<ValueSet>(&event.body)) return take_value(supervisor, event.node, *set);
  if (auto* failed = std::get_if<RanksFailed>(&event.body)) return take_failure(event.node, failed->failure);
  if (auto* ended = std::get_if<RankEnded>(&event.body)) return take_end(event.node, *ended);
  if (std::holds_alternative<RanksGone>(event.body)) return take_all_ended(event.node);
  return "has sent a contribution while ranks run";
}

std::string NodeAgent::take_value(Supervisor& supervisor, int node, ValueSet& set) {
  size_t& bytes = value_bytes_[static_cast<size_t>(node)];
  bytes += set.key.size() + set.value.size() + kValueBytes;
  if (bytes > kMostValueBytes) return "has set more values than the others can store";
  const auto known = values_.emplace(std::move(set.key), std::move(set.value)).first;
  answer(supervisor, known->first);
  return "";
}

// Node 0 may name a rank of another node as reporter, because node 0 detects hung ranks.
std::string NodeAgent::take_failure(int node, const comm::Failure& failure) {
  if (has_failed_[static_cast<size_t>(node)]) return "has sent two failures";
  has_failed_[static_cast<size_t>(node)] = true;
  if (node != 0 && failure.reporter != -1 && !is_rank_of(node, failure.reporter)) {
    return cat("has sent a failure that rank ", failure.reporter, " of another node reports");
  }
  if (failure_) {
    if (failure.reporter >= 0 && failure.reporter == failure.rank) later_failures_.push_back(failure);
    return "";
  }
  failure_ = failure;
  board_.fail(failure);
  return "";
}

std::optional<comm::Failure> NodeAgent::failure() const {
  auto failure = failure_;
  for (const comm::Failure& later : later_failures_) {
    const bool died = outcomes_[static_cast<size_t>(later.rank)].empty();
    if (died && later.rank != failure->rank) failure->why += cat("; rank ", later.rank, ": ", later.why);
  }
  return failure;
}

std::string NodeAgent::take_end(int node, RankEnded& ended) {
  if (!is_rank_of(node, ended.rank)) return cat("has sent the outcome of rank ", ended.rank, " of another node");
  std::string& outcome = outcomes_[static_cast<size_t>(ended.rank)];
  if (!outcome.empty()) return cat("has sent the outcome of rank ", ended.rank, " twice");
  outcome = std::move(ended.outcome);
  return "";
}

// Without a known failure, a node must send the outcomes of all its ranks before it reports their end.
std::string NodeAgent::take_all_ended(int node) {
  for (size_t rank = 0; rank < outcomes_.size() && !failure_; ++rank) {
    if (node_of_rank_[rank] == node && outcomes_[rank].empty()) return cat("has not sent the outcome of rank ", rank);
  }
  at_end_[static_cast<size_t>(node)] = true;
  return "";
}

bool NodeAgent::is_rank_of(int node, int rank) const {
  return 0 <= rank && rank < static_cast<int>(node_of_rank_.size()) && node_of_rank_[static_cast<size_t>(rank)] == node;
}

// A node failure replaces one rank's report about another: it may be the cause of a closed connection or a rank that
// did not join. A node that has received the end of all ranks may leave at once; that is no failure.
void NodeAgent::take_node_failure() {
  if (all_at_end()) return;
  const bool in_doubt = failure_ && failure_->reporter >= 0 && failure_->reporter != failure_->rank;
  if (rounds_.lost_node() < 0 || (failure_ && !in_doubt)) return;
  const auto first = std::ranges::find(node_of_rank_, rounds_.lost_node());
  failure_ = comm::Failure{static_cast<int>(first - node_of_rank_.begin()), -1, rounds_.loss()};
  board_.fail(*failure_);
}

void NodeAgent::look(Supervisor& supervisor, const std::vector<RankSample>& signs) {
  RanksReport own{rounds_.number(), signs, {}};
  for (int place = 0; place < supervisor.num_ranks(); ++place) {
    own.states.push_back(supervisor.state(place).substr(0, kMostStateBytes));
  }
  if (rounds_.node() != 0) return rounds_.report(std::move(own));
  auto reports = rounds_.take_reports();
  reports[0] = std::move(own);
  for (size_t node = 0; node < reports.size(); ++node) {
    auto& report = reports[node];
    if (!report || report->round != rounds_.number()) continue;  // a report of another round
    size_t place = 0;
    for (size_t rank = 0; rank < node_of_rank_.size() && place < report->signs.size(); ++rank) {
      if (node_of_rank_[rank] != static_cast<int>(node)) continue;
      signs_[rank] = report->signs[place];
      states_[rank] = std::move(report->states[place++]);
    }
  }
  look_at_all();
}

// The supervisor of a hung rank kills it after it has received the failure.
void NodeAgent::look_at_all() {
  if (board_.failed()) return;
  const auto hung = hangs_.look(now_seconds(), signs_);
  if (!hung) return;
  const control::JobNode& node = rounds_.nodes()[static_cast<size_t>(node_of_rank_[static_cast<size_t>(*hung)])];
  board_.fail({*hung, *hung, cat("makes no progress on ", node.host, " (", joined(states_, "; "), ")")});
}

}  // namespace braid::launch
