// From one end of an action to the next: between them nobody's speed changes.
#include "braid/schedule/shared_cores.h"

#include <algorithm>
#include <limits>

#include "braid/base/errors.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/walk.h"

namespace braid::schedule {
namespace {

class SharedClock {
 public:
  SharedClock(const Schedule& schedule, const CostModel& cost, double cores)
      : schedule_(schedule), cost_(cost), cores_(cores), ranks_(schedule.num_ranks()) {
    timeline_.ranks.resize(ranks_.size());
    for (size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].after.resize(schedule.programs[rank].size());
    const std::vector<int> stops = walk(schedule, SendMode::Buffered, [this](const Visit& visit) {
      ranks_[visit.rank].after[visit.index] = {visit.after_rank, visit.after_index};
    });
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      check(stops[rank] == static_cast<int>(schedule.programs[rank].size()), "a schedule that is played has an end");
    }
  }

  Timeline run() && {
    while (true) {
      for (size_t rank = 0; rank < ranks_.size(); ++rank) begin_next(rank);
      const auto computing = std::ranges::count_if(ranks_, [](const Rank& rank) { return rank.actions > 0; });
      if (computing == 0) return std::move(timeline_);
      advance(std::min(1.0, cores_ / static_cast<double>(computing)));
    }
  }

 private:
  struct After {
    int rank = -1, index = -1;
  };
  struct Rank {
    std::vector<After> after;  // by action
    int done = 0;              // actions
    int actions = 0;           // that it is at: none, one, or a fused pair
    double left = 0;           // of them, at full speed
    double begin = 0;
  };

  bool is_there(const After& after) const { return after.rank < 0 || ranks_[after.rank].done > after.index; }

  void begin_next(size_t number) {
    Rank& rank = ranks_[number];
    const Program& program = schedule_.programs[number];
    if (rank.actions > 0 || rank.done == static_cast<int>(program.size())) return;
    const int count = pair_begins(program, rank.done) ? 2 : 1;
    for (int i = 0; i < count; ++i) {
      if (!is_there(rank.after[rank.done + i])) return;
    }
    const Action& action = program[rank.done];
    rank.left = count == 2 ? cost_.compute_pair(action, program[rank.done + 1]) : cost_.compute(action);
    rank.actions = count;
    rank.begin = now_;
  }

  // Until the first of the actions at hand ends.
  void advance(double speed) {
    double least = std::numeric_limits<double>::infinity();
    for (const Rank& rank : ranks_) {
      if (rank.actions > 0) least = std::min(least, rank.left);
    }
    now_ += least / speed;
    for (size_t number = 0; number < ranks_.size(); ++number) {
      Rank& rank = ranks_[number];
      if (rank.actions == 0) continue;
      rank.left -= least;
      if (rank.left > 0) continue;
      for (int i = 0; i < rank.actions; ++i) {
        timeline_.ranks[number].push_back({schedule_.programs[number][rank.done + i], rank.begin, now_});
      }
      rank.done += rank.actions;
      rank.actions = 0;
    }
  }

  const Schedule& schedule_;
  const CostModel& cost_;
  const double cores_;
  std::vector<Rank> ranks_;
  double now_ = 0;
  Timeline timeline_;
};

}  // namespace

Timeline simulate_sharing(const Schedule& schedule, const CostModel& cost, double cores) {
  check(!has_comms(schedule) && cores > 0, "ranks share cores, and transfers take no time");
  return SharedClock(schedule, cost, cores).run();
}

}  // namespace braid::schedule
