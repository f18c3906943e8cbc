// Counting along each program. It trusts the schedule, but not so far as to crash on a faulty one.
#include "braid/schedule/peaks.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

namespace braid {
namespace {

constexpr int kNoLimit = std::numeric_limits<int>::max();

// The versions of one stage's weights on one rank.
class Versions {
 public:
  void read(int micro) {
    reads_[micro] = newest();
    ++users_.back();
  }

  void release(int micro) {
    const auto read = reads_.find(micro);
    if (read == reads_.end()) return;
    int& users = users_[read->second - oldest_];
    if (--users == 0 && read->second != newest()) --kept_;
    reads_.erase(read);
    while (users_.size() > 1 && users_.front() == 0) users_.pop_front(), ++oldest_;
  }

  void update() {
    if (users_.back() > 0) ++kept_;
    users_.push_back(0);
    while (users_.front() == 0 && users_.size() > 1) users_.pop_front(), ++oldest_;
  }

  int kept() const { return kept_; }

 private:
  int newest() const { return oldest_ + static_cast<int>(users_.size()) - 1; }

  std::map<int, int> reads_;     // by microbatch in flight: the version it read
  std::deque<int> users_ = {0};  // microbatches in flight by version, from oldest_ to the newest
  int oldest_ = 0;
  int kept_ = 1;  // the newest, and those with users
};

// The count after each action; what fits the name of Held.
class Counter {
 public:
  Counter(const Schedule& schedule, Held held) : held_(held) {
    if (held == Held::WeightVersions) versions_.resize(schedule.num_stages);
  }

  int after(const Action& action) {
    const bool whole = action.op == Op::FullBackward;
    if (held_ == Held::WeightVersions) return versions_after(action);
    if (action.op == Op::Forward) ++count_;
    if (whole || action.op == (held_ == Held::Activations ? Op::InputGrad : Op::WeightGrad)) --count_;
    return count_;
  }

 private:
  int versions_after(const Action& action) {
    Versions& versions = versions_[action.stage];
    if (action.op == Op::Forward) versions.read(action.micro);
    if (action.op == Op::FullBackward || action.op == Op::InputGrad) versions.release(action.micro);
    if (action.op == Op::Update) versions.update();
    return versions.kept();
  }

  const Held held_;
  int count_ = 0;
  std::vector<Versions> versions_;  // by stage
};

std::vector<int> peaks(const Schedule& schedule, Held held) {
  std::vector<int> result;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    result.push_back(held_peak(schedule, rank, held, kNoLimit).most);
  }
  return result;
}

bool has_updates(const Program& program) {
  return std::any_of(program.begin(), program.end(), [](const Action& action) { return action.op == Op::Update; });
}

}  // namespace

std::vector<int> peak_activations(const Schedule& schedule) { return peaks(schedule, Held::Activations); }

std::vector<int> peak_pending_weight_grads(const Schedule& schedule) { return peaks(schedule, Held::WeightGrads); }

int weight_versions(const Schedule& schedule) {
  int most = 1;
  for (const int versions : peaks(schedule, Held::WeightVersions)) most = std::max(most, versions);
  return most;
}

HeldPeak held_peak(const Schedule& schedule, int rank, Held held, int limit) {
  const Program& program = schedule.programs[rank];
  if (held == Held::WeightVersions && !has_updates(program)) return {.most = 1};
  Counter counter(schedule, held);
  HeldPeak peak;
  for (size_t i = 0; i < program.size(); ++i) {
    peak.most = std::max(peak.most, counter.after(program[i]));
    if (peak.first_above < 0 && peak.most > limit) peak.first_above = static_cast<int>(i);
  }
  return peak;
}

}  // namespace braid
