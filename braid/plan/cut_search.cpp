// Dynamic programming over the stages in the order of placement. The cuts are found by following parents back.
#include "braid/plan/cut_search.h"

#include <algorithm>
#include <map>

namespace braid::plan {
namespace {

// The search gives up beyond either limit. It reaches them when dozens of ranks are open, and would take too long.
constexpr size_t kMostStates = 1'000'000;  // states of one step
constexpr int64_t kMostComparisons = 20'000'000;

enum class Side { Left, Right };
struct Step {
  int stage;
  Side side;
  std::vector<int> open;    // ranks with a stage placed and one to place, after this step
  std::vector<int> closed;  // ranks that got their last stage
};

bool any_open(const StageCosts& costs, int stage, const std::vector<int>& open) {
  const auto is_open = [&](const Holder& holder) {
    return std::find(open.begin(), open.end(), holder.rank) != open.end();
  };
  return std::any_of(costs.holders(stage).begin(), costs.holders(stage).end(), is_open);
}

std::vector<Step> order_of_placement(const StageCosts& costs) {
  std::vector<int> stages_left(costs.num_ranks(), 0);
  for (int stage = 0; stage < costs.num_stages(); ++stage) {
    for (const Holder& holder : costs.holders(stage)) ++stages_left[holder.rank];
  }
  std::vector<Step> steps;
  std::vector<int> open;
  for (int left = 0, right = costs.num_stages() - 1; left <= right;) {
    const bool from_right = left < right && any_open(costs, right, open) && !any_open(costs, left, open);
    Step step{from_right ? right-- : left++, from_right ? Side::Right : Side::Left, {}, {}};
    for (const Holder& holder : costs.holders(step.stage)) {
      if (std::find(open.begin(), open.end(), holder.rank) == open.end()) open.push_back(holder.rank);
      if (--stages_left[holder.rank] == 0) step.closed.push_back(holder.rank);
    }
    std::erase_if(open, [&](int rank) { return stages_left[rank] == 0; });
    step.open = open;
    steps.push_back(std::move(step));
  }
  return steps;
}

// The load of the stages that a rank has so far.
struct Held {
  double seconds = 0;
  int64_t bytes = 0;
  bool operator<=(const Held& other) const { return seconds <= other.seconds && bytes <= other.bytes; }
};

struct State {
  int left, right;         // units still to be placed
  double value;            // value of the criterion
  std::vector<Held> held;  // loads of the step's open ranks
  int parent;              // index in the states of the step before
};

using Range = std::pair<int, int>;

class Search {
 public:
  Search(const StageCosts& costs, const Caps& caps, Criterion criterion)
      : costs_(costs), caps_(caps), criterion_(criterion), steps_(order_of_placement(costs)) {}

  CutSearch run() {
    states_ = {{{0, costs_.num_units(), 0, {}, -1}}};
    for (size_t k = 0; k < steps_.size(); ++k) {
      place(k);
      if (too_many()) return {CutSearch::End::TooManyStates, {}};
      if (states_.back().empty()) return {CutSearch::End::NoneFits, {}};
    }
    const auto best = std::min_element(states_.back().begin(), states_.back().end(),
                                       [](const State& a, const State& b) { return a.value < b.value; });
    return {CutSearch::End::Found, cuts(static_cast<int>(best - states_.back().begin())), best->value};
  }

 private:
  bool too_many() const { return states_.back().size() > kMostStates || num_comparisons_ > kMostComparisons; }

  void place(size_t k) {
    states_.emplace_back();
    fronts_.clear();
    const auto& before = states_[k];
    const int to_place = static_cast<int>(steps_.size() - k) - 1;
    for (int parent = 0; parent < static_cast<int>(before.size()); ++parent) {
      const State from = before[parent];
      const int most = from.right - from.left - to_place;
      for (int taken = to_place == 0 ? most : 1; taken <= most; ++taken) {
        if (!extend(k, from, parent, taken)) break;
        if (too_many()) return;
      }
    }
    drop_dominated();
  }

  // Gives the step's stage `taken` units. Returns false if that exceeds a cap, which more units would exceed too.
  bool extend(size_t k, const State& from, int parent, int taken) {
    const Step& step = steps_[k];
    const bool left = step.side == Side::Left;
    const int begin = left ? from.left : from.right - taken, end = begin + taken;
    if (costs_.stage_seconds(step.stage, begin, end) > caps_.stage_seconds) return false;
    State to{left ? end : from.left, left ? from.right : begin, from.value, {}, parent};
    add_stage(costs_.stage_seconds(step.stage, begin, end), to);
    const std::vector<int> none, &open_before = k == 0 ? none : steps_[k - 1].open;
    std::vector<Held> all(costs_.num_ranks());
    for (size_t i = 0; i < open_before.size(); ++i) all[open_before[i]] = from.held[i];
    for (const Holder& holder : costs_.holders(step.stage)) {
      Held& held = all[holder.rank];
      held.seconds += costs_.load(holder, begin, end);
      held.bytes += costs_.bytes(holder, begin, end);
      if (held.seconds > caps_.rank_seconds || held.bytes > caps_.rank_bytes) return false;
    }
    for (const int rank : step.closed) add_rank(all[rank], to);
    for (const int rank : step.open) to.held.push_back(compared(all[rank]));
    if (can_still_fit(k, to)) keep(std::move(to));
    return true;
  }

  void add_stage(double seconds, State& to) const {
    if (criterion_ == Criterion::StageSeconds) to.value = std::max(to.value, seconds);
    if (criterion_ == Criterion::Squares) to.value += seconds * seconds;
  }
  void add_rank(const Held& held, State& to) const {
    if (criterion_ == Criterion::RankSeconds) to.value = std::max(to.value, held.seconds);
    if (criterion_ == Criterion::RankBytes) to.value = std::max(to.value, static_cast<double>(held.bytes));
  }
  // Returns the load without quantities that neither the criterion nor a cap depends on, so that more states are equal.
  Held compared(Held held) const {
    const bool no_time = criterion_ != Criterion::RankSeconds && caps_.rank_seconds == Caps().rank_seconds;
    const bool no_bytes = criterion_ != Criterion::RankBytes && caps_.rank_bytes == Caps().rank_bytes;
    return {no_time ? 0 : held.seconds, no_bytes ? 0 : held.bytes};
  }

  // Returns true if open ranks and ranks without a stage have time for the remaining units.
  bool can_still_fit(size_t k, const State& to) const {
    if (caps_.rank_seconds == Caps().rank_seconds) return true;
    double room = 0;
    for (size_t i = 0; i < to.held.size(); ++i) {
      room += (caps_.rank_seconds - to.held[i].seconds) * costs_.speed(steps_[k].open[i]);
    }
    for (size_t later = k + 1; later < steps_.size(); ++later) {
      for (const int rank : steps_[later].closed) {
        const auto& open = steps_[k].open;
        if (std::find(open.begin(), open.end(), rank) == open.end()) room += caps_.rank_seconds * costs_.speed(rank);
      }
    }
    constexpr double kRounding = 1 + 1e-9;
    return costs_.seconds(to.left, to.right) <= room * kRounding;
  }

  static bool dominates(const State& a, const State& b) {
    if (a.value > b.value) return false;
    for (size_t i = 0; i < a.held.size(); ++i) {
      if (!(a.held[i] <= b.held[i])) return false;
    }
    return true;
  }

  void keep(State state) {
    auto& front = fronts_[{state.left, state.right}];
    auto& states = states_.back();
    num_comparisons_ += static_cast<int64_t>(front.size());
    for (const int other : front) {
      if (dominates(states[other], state)) return;
    }
    std::erase_if(front, [&](int other) { return dominates(state, states[other]); });
    front.push_back(static_cast<int>(states.size()));
    states.push_back(std::move(state));
  }

  void drop_dominated() {
    std::vector<State> kept;
    for (const auto& [range, front] : fronts_) {
      for (const int place : front) kept.push_back(std::move(states_.back()[place]));
    }
    states_.back() = std::move(kept);
  }

  std::vector<int> cuts(int place) const {
    std::vector<int> first_unit(steps_.size() + 1, costs_.num_units());
    for (size_t k = steps_.size(); k > 0; --k) {
      const State& to = states_[k][place];
      const State& from = states_[k - 1][to.parent];
      first_unit[steps_[k - 1].stage] = steps_[k - 1].side == Side::Left ? from.left : to.right;
      place = to.parent;
    }
    return first_unit;
  }

  const StageCosts& costs_;
  const Caps& caps_;
  Criterion criterion_;
  std::vector<Step> steps_;
  std::vector<std::vector<State>> states_;    // states after each step
  std::map<Range, std::vector<int>> fronts_;  // by remaining units: undominated states of the last step
  int64_t num_comparisons_ = 0;
};

}  // namespace

CutSearch search_cuts(const StageCosts& costs, const Caps& caps, Criterion criterion) {
  return Search(costs, caps, criterion).run();
}

}  // namespace braid::plan
