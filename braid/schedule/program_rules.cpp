// Rules that one rank's program shows by itself.
#include "braid/base/text.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/rules.h"

namespace braid {
namespace {

// Along one rank's program.
class Checker {
 public:
  Checker(const Schedule& schedule, int rank, std::vector<Fault>& faults)
      : program_(schedule.programs[rank]), rank_(rank), faults_(faults), unsharded_(schedule.num_stages, false) {}

  void check_fusion() {
    for (size_t i = 0; i < program_.size(); ++i) {
      if (program_[i].fusion == Fusion::None) continue;
      if (!pair_begins(program_, i)) {
        fault(i, cat(text(program_[i]), ": is marked as fused, but it is no F with a B or an I after it"));
      } else if (program_[i].micro == program_[i + 1].micro) {
        fault(i, cat(word_at(program_, i), ": fuses two passes of one microbatch"));
      }
    }
  }

  // Every compute action of a stage stands between its UNSHARD and its RESHARD.
  void check_shards() {
    for (size_t i = 0; i < program_.size(); ++i) {
      const Action& action = program_[i];
      if (action.op == Op::Unshard) {
        if (unsharded_[action.stage]) fault(i, cat(text(action), ": its stage is unsharded already"));
        unsharded_[action.stage] = true;
      } else if (action.op == Op::Reshard) {
        if (!unsharded_[action.stage]) fault(i, cat(text(action), ": its stage is not unsharded"));
        unsharded_[action.stage] = false;
      } else if (needs_weights(action.op) && !unsharded_[action.stage]) {
        fault(i, cat(text(action), ": its stage is not unsharded"));
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

bool has_shards(const Schedule& schedule) {
  for (const auto& program : schedule.programs) {
    for (const auto& action : program) {
      if (action.op == Op::Unshard || action.op == Op::Reshard) return true;
    }
  }
  return false;
}

}  // namespace

void check_programs(const Schedule& schedule, std::vector<Fault>& faults) {
  const bool sharded = has_shards(schedule);
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    Checker checker(schedule, rank, faults);
    checker.check_fusion();
    if (sharded) checker.check_shards();
  }
}

}  // namespace braid
