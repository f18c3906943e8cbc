// The rules that can be checked on one rank's program by itself.
#include <algorithm>

#include "braid/base/text.h"
#include "braid/schedule/peaks.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/rules.h"

namespace braid::schedule {
namespace {

// Checks the rules along one rank's program.
class ProgramChecker {
 public:
  ProgramChecker(const Schedule& schedule, int rank, std::vector<Fault>& faults)
      : program_(schedule.programs[rank]), rank_(rank), faults_(faults), unsharded_(schedule.num_stages, false) {}

  void check_fusion() {
    for (size_t i = 0; i < program_.size(); ++i) {
      if (program_[i].fusion == Fusion::None) continue;
      if (!pair_begins(program_, i)) {
        fault(i, cat(braid::text(program_[i]), ": is marked as fused, but it is no F with a B or an I after it"));
      } else if (program_[i].micro == program_[i + 1].micro) {
        fault(i, cat(word_at(program_, i), ": fuses two passes of one microbatch"));
      }
    }
  }

  // Checks that F, B, I, W and RECOMPUTE of a stage run only while it is unsharded, and that its UNSHARD and RESHARD
  // alternate.
  void check_shards() {
    for (size_t i = 0; i < program_.size(); ++i) {
      const Action& action = program_[i];
      if (action.op == Op::Unshard) {
        if (unsharded_[action.stage]) fault(i, cat(braid::text(action), ": its stage is unsharded already"));
        unsharded_[action.stage] = true;
      } else if (action.op == Op::Reshard) {
        if (!unsharded_[action.stage]) fault(i, cat(braid::text(action), ": its stage is not unsharded"));
        unsharded_[action.stage] = false;
      } else if (needs_weights(action.op) && !unsharded_[action.stage]) {
        fault(i, cat(braid::text(action), ": its stage is not unsharded"));
      }
    }
  }

 private:
  static bool needs_weights(Op op) { return op <= Op::WeightGrad || op == Op::Recompute; }

  void fault(size_t index, std::string text) { faults_.push_back({rank_, static_cast<int>(index), std::move(text)}); }

  const Program& program_;
  const int rank_;
  std::vector<Fault>& faults_;
  std::vector<bool> unsharded_;  // by stage, on this rank
};

// Checks a rank's peaks against the schedule's promise.
class PromiseChecker {
 public:
  PromiseChecker(const Schedule& schedule, int rank, std::vector<Fault>& faults)
      : schedule_(schedule), rank_(rank), faults_(faults) {}

  void check() {
    const ScheduleProperty& promise = schedule_.promise;
    check(HeldResource::Activations, promise.peak_activations, " activations in flight");
    check(HeldResource::WeightGrads, promise.peak_pending_weight_grads, " pending weight gradients");
    hold(HeldResource::WeightVersions, promise.weight_versions, " versions of its stage's weights");
  }

 private:
  void check(HeldResource held, const std::vector<int>& limits, const char* what) {
    if (!limits.empty()) hold(held, limits[rank_], what);
  }

  void hold(HeldResource held, int limit, const char* what) {
    const int at = held_peak(schedule_, rank_, held, limit).first_above;
    if (at < 0) return;
    const Action& action = schedule_.programs[rank_][at];
    faults_.push_back(
        {rank_, at, cat(braid::text(action), ": makes ", limit + 1, what, ", the schedule promises ", limit)});
  }

  const Schedule& schedule_;
  const int rank_;
  std::vector<Fault>& faults_;
};

bool has_shards(const Schedule& schedule) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [](const Program& program) {
    return std::any_of(program.begin(), program.end(),
                       [](const Action& action) { return action.op == Op::Unshard || action.op == Op::Reshard; });
  });
}

// Returns true if `promised` has one number for each rank, or none at all. Otherwise adds a fault.
bool fits(const std::vector<int>& promised, const Schedule& schedule, std::vector<Fault>& faults) {
  if (promised.empty() || static_cast<int>(promised.size()) == schedule.num_ranks()) return true;
  faults.push_back({-1, -1, cat("promises for ", promised.size(), " ranks, but there are ", schedule.num_ranks())});
  return false;
}

}  // namespace

void check_programs(const Schedule& schedule, std::vector<Fault>& faults) {
  const bool sharded = has_shards(schedule);
  const ScheduleProperty& promise = schedule.promise;
  const bool promised = promise != ScheduleProperty{} && fits(promise.peak_activations, schedule, faults) &&
                        fits(promise.peak_pending_weight_grads, schedule, faults);
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    ProgramChecker checker(schedule, rank, faults);
    checker.check_fusion();
    if (sharded) checker.check_shards();
    if (promised) PromiseChecker(schedule, rank, faults).check();
  }
}

}  // namespace braid::schedule
