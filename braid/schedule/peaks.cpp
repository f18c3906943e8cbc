// The peaks, counted along each program. The counts assume a valid schedule, but a faulty one does not crash them.
#include "braid/schedule/peaks.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

namespace braid::schedule {
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
  std::deque<int> users_ = {0};  // number of microbatches in flight by version, from oldest_ to the newest
  int oldest_ = 0;
  int kept_ = 1;  // number of versions kept: the newest, and those with users
};

// Returns the peak of after(action), which is called for the actions in the order of the program.
template <class After>
HeldPeak peak_of(const Program& program, int limit, After after) {
  HeldPeak peak;
  for (size_t i = 0; i < program.size(); ++i) {
    __builtin_prefetch(&program[i] + 64);  // half of the time is spent waiting for memory
    peak.most = std::max(peak.most, after(program[i]));
    if (peak.first_above < 0 && peak.most > limit) peak.first_above = static_cast<int>(i);
  }
  return peak;
}

HeldPeak versions_peak(const Schedule& schedule, const Program& program, int limit) {
  std::vector<Versions> versions(schedule.num_stages);
  return peak_of(program, limit, [&](const Action& action) {
    Versions& of_stage = versions[action.stage];
    if (schedule.backward(action.stage) != StageBackward::Whole) return of_stage.kept();  // its weights stay
    if (action.op == Op::Forward) of_stage.read(action.micro);
    if (goes_back(action.op)) of_stage.release(action.micro);
    if (action.op == Op::Update) of_stage.update();
    return of_stage.kept();
  });
}

std::vector<int> peaks(const Schedule& schedule, HeldResource held) {
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

std::vector<int> peak_activations(const Schedule& schedule) { return peaks(schedule, HeldResource::Activations); }

std::vector<int> peak_pending_weight_grads(const Schedule& schedule) {
  return peaks(schedule, HeldResource::WeightGrads);
}

int weight_versions(const Schedule& schedule) {
  int most = 1;
  for (const int versions : peaks(schedule, HeldResource::WeightVersions)) most = std::max(most, versions);
  return most;
}

HeldPeak held_peak(const Schedule& schedule, int rank, HeldResource held, int limit) {
  const Program& program = schedule.programs[rank];
  if (held == HeldResource::WeightVersions) {
    return has_updates(program) ? versions_peak(schedule, program, limit) : HeldPeak{.most = 1};
  }
  const Op end = held == HeldResource::Activations ? Op::InputGrad : Op::WeightGrad;  // ends a pair, as B does
  const auto holds = [&](StageBackward backward) {
    return backward == StageBackward::Whole ||
           (backward == StageBackward::InputOnly && held == HeldResource::Activations);
  };
  return peak_of(program, limit, [&, end, count = 0](const Action& action) mutable {
    if (!holds(schedule.backward(action.stage))) return count;
    return count += (action.op == Op::Forward) - (action.op == Op::FullBackward || action.op == end);
  });
}

}  // namespace braid::schedule
