// The pass that adds UNSHARD and RESHARD. A rank gathers the parameters of the stages that it runs next, and frees all
// others.
#include <algorithm>
#include <set>

#include "braid/base/errors.h"
#include "braid/schedule/passes.h"

namespace braid::schedule {
namespace {

bool needs_parameters(Op op) { return op <= Op::WeightGrad || op == Op::Recompute; }

class Sharder {
 public:
  Sharder(const Program& program, int most_stages) : program_(program), most_stages_(most_stages) {
    for (size_t i = 0; i < program.size(); ++i) {
      if (needs_parameters(program[i].op)) uses_of(program[i].stage).places.push_back(i);
    }
  }

  Program run() {
    result_.reserve(program_.size() + 2 * uses_.size());
    for (size_t i = 0; i < program_.size(); ++i) {
      if (needs_parameters(program_[i].op) && !pair_ends(program_, i)) prepare(i);
      result_.push_back(program_[i]);
    }
    for (int stage : gathered_) result_.push_back({Op::Reshard, stage, -1});
    return std::move(result_);
  }

 private:
  struct Uses {
    int stage;
    std::vector<size_t> places;  // in the program, ascending
    size_t next = 0;             // index in `places` of the first use that has not passed
  };

  Uses& uses_of(int stage) {
    const auto found = std::find_if(uses_.begin(), uses_.end(), [&](const Uses& uses) { return uses.stage == stage; });
    return found != uses_.end() ? *found : uses_.emplace_back(Uses{stage, {}});
  }

  // Returns up to most_stages_ stages that run next, from place `now` on, in the order of their turns. A fused pair is
  // not separated, so there may be one stage more.
  std::vector<int> next_stages(size_t now) {
    std::vector<std::pair<size_t, int>> turns;
    for (auto& uses : uses_) {
      while (uses.next < uses.places.size() && uses.places[uses.next] < now) ++uses.next;
      if (uses.next < uses.places.size()) turns.emplace_back(uses.places[uses.next], uses.stage);
    }
    std::sort(turns.begin(), turns.end());
    std::vector<int> stages;
    for (size_t i = 0; i < turns.size(); ++i) {
      const auto [place, stage] = turns[i];
      const bool same_turn = i > 0 && turns[i - 1].first + 1 == place && pair_ends(program_, place);
      if (static_cast<int>(stages.size()) >= most_stages_ && !same_turn) break;
      stages.push_back(stage);
    }
    return stages;
  }

  void prepare(size_t now) {
    const std::vector<int> next = next_stages(now);
    for (auto stage = gathered_.begin(); stage != gathered_.end();) {
      const bool soon = std::find(next.begin(), next.end(), *stage) != next.end();
      if (!soon) result_.push_back({Op::Reshard, *stage, -1});
      stage = soon ? std::next(stage) : gathered_.erase(stage);
    }
    for (int stage : next) {
      if (gathered_.insert(stage).second) result_.push_back({Op::Unshard, stage, -1});
    }
  }

  const Program& program_;
  const int most_stages_;
  std::vector<Uses> uses_;  // in the order of first use
  std::set<int> gathered_;
  Program result_;
};

}  // namespace

Schedule with_unshard(const Schedule& schedule, int most_stages) {
  check(most_stages >= 1, "a rank needs one stage's parameters to run it");
  for (const auto& program : schedule.programs) {
    for (const auto& action : program) {
      if (action.op == Op::Unshard || action.op == Op::Reshard) return schedule;
    }
  }
  Schedule result = schedule;
  for (auto& program : result.programs) program = Sharder(program, most_stages).run();
  return result;
}

}  // namespace braid::schedule
