// Random programs of messages and barriers, some of which can never end, and the serial verdict on each: it plays all
// ranks in turn until nobody moves. It uses nothing of the communicator.
#pragma once

#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

namespace braid::comm::tests {

struct MessageStep {
  enum class Kind { Send, SendAndWait, Receive, Barrier };
  Kind kind;
  int peer, tag;
  int value;  // of a send
};

struct MessagePrograms {
  std::vector<std::vector<MessageStep>> ranks;
};

// In one global order, so that all end (but for a rank that waits for itself); then up to three steps are swapped with
// their neighbours or dropped.
inline MessagePrograms message_programs(uint64_t seed) {
  using Kind = MessageStep::Kind;
  std::mt19937_64 draw(seed);
  auto below = [&draw](size_t limit) { return static_cast<int>(draw() % limit); };
  MessagePrograms programs{std::vector<std::vector<MessageStep>>(2 + below(4))};
  auto& ranks = programs.ranks;
  const int length = 1 + below(14);
  for (int i = 0; i < length; ++i) {
    const int sender = below(ranks.size()), receiver = below(ranks.size()), tag = below(2);
    if (below(8) == 0) {
      for (auto& rank : ranks) rank.push_back({Kind::Barrier, 0, 0, 0});
    } else {
      ranks[sender].push_back({below(2) ? Kind::Send : Kind::SendAndWait, receiver, tag, i});
      ranks[receiver].push_back({Kind::Receive, sender, tag, 0});
    }
  }
  for (int changes = below(4); changes > 0; --changes) {
    auto& rank = ranks[below(ranks.size())];
    if (rank.size() < 2) continue;
    const int at = below(rank.size() - 1);
    if (below(4) == 0) {
      rank.erase(rank.begin() + at);
    } else {
      std::swap(rank[at], rank[at + 1]);
    }
  }
  return programs;
}

// Runs the programs: every step is issued when the one before has ended.
class MessageVerdict {
 public:
  explicit MessageVerdict(const MessagePrograms& programs)
      : programs_(programs), issued_(programs.ranks.size()), received_(programs.ranks.size()) {
    for (int rank = 0; rank < size(); ++rank) issue(rank);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < size(); ++rank) moved |= move(rank);
    }
  }

  // Every rank comes to its end and every message arrives.
  bool ends() const {
    for (int rank = 0; rank < size(); ++rank) {
      if (issued_[rank] <= steps(rank)) return false;
    }
    for (const auto& [route, values] : sent_) {
      if (waiting_for(route) < static_cast<int>(values.size())) return false;
    }
    return true;
  }
  // By rank, in the order of its receives; of those that ended.
  const std::vector<std::vector<int>>& received() const { return received_; }

 private:
  using Kind = MessageStep::Kind;
  using Route = std::tuple<int, int, int>;  // sender, receiver, tag

  int size() const { return static_cast<int>(programs_.ranks.size()); }
  int steps(int rank) const { return static_cast<int>(programs_.ranks[rank].size()); }
  const MessageStep& current(int rank) const { return programs_.ranks[rank][issued_[rank] - 1]; }
  int waiting_for(const Route& route) const {
    const auto found = receives_.find(route);
    return found == receives_.end() ? 0 : found->second;
  }

  void issue(int rank) {
    if (++issued_[rank] > steps(rank)) return;
    const MessageStep& step = current(rank);
    if (step.kind == Kind::Barrier) ++barriers_[rank];
    if (step.kind == Kind::Receive) ++receives_[{step.peer, rank, step.tag}];
    if (step.kind == Kind::Send || step.kind == Kind::SendAndWait) {
      sent_[{rank, step.peer, step.tag}].push_back(step.value);
    }
  }

  bool move(int rank) {
    if (issued_[rank] > steps(rank)) return false;
    const MessageStep& step = current(rank);
    if (step.kind == Kind::SendAndWait) {
      const Route route{rank, step.peer, step.tag};
      if (waiting_for(route) < static_cast<int>(sent_[route].size())) return false;
    }
    if (step.kind == Kind::Receive) {
      const Route route{step.peer, rank, step.tag};
      const int place = waiting_for(route) - 1;
      if (static_cast<int>(sent_[route].size()) <= place) return false;
      received_[rank].push_back(sent_[route][place]);
    }
    if (step.kind == Kind::Barrier) {
      for (int other = 0; other < size(); ++other) {
        if (barriers_[other] < barriers_[rank]) return false;
      }
    }
    issue(rank);
    return true;
  }

  const MessagePrograms& programs_;
  std::vector<int> issued_;  // by rank: steps issued, the last of which has not ended
  std::vector<std::vector<int>> received_;
  std::map<Route, std::vector<int>> sent_;  // values in order
  std::map<Route, int> receives_;           // issued
  std::map<int, int> barriers_;             // by rank
};

}  // namespace braid::comm::tests
