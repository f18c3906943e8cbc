// The rules of a sound schedule, for validate() alone. Each adds the faults it finds, in any order.
#pragma once

#include <array>
#include <vector>

#include "braid/schedule/schedule.h"
#include "braid/schedule/validate.h"

namespace braid::schedule {

// Positions of actions in a schedule: for every op, stage and microbatch, the index in its owner's program.
class Positions {
 public:
  static constexpr int kMissing = -1;

  // Empty. Space grows with the ops that occur.
  explicit Positions(const Schedule& schedule) : schedule_(schedule) {}

  // Notes that the owner of (stage, micro) runs `op` at `index`. Returns kMissing when that is the first time, and the
  // first index else, which stays. For ops of a whole stage micro is the first of the copy.
  int note(Op op, int stage, int micro, int index);

  // Returns the first index in the owner's program, or kMissing.
  int at(Op op, int stage, int micro) const;

  // Returns true if the op occurs at all.
  bool any(Op op) const { return !positions_[static_cast<size_t>(op)].empty(); }

  // Returns the index of the microbatch's weight pass, W or else B, or kMissing; and the op.
  int weight_pass(int stage, int micro) const { return at(weight_op(stage, micro), stage, micro); }
  Op weight_op(int stage, int micro) const;

 private:
  const Schedule& schedule_;
  std::array<std::vector<int>, kNumOps> positions_;  // by op, then stage and microbatch
};

// Passes and transfers of every (stage, microbatch): present, in order, matched.
void check_microbatches(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults);

// REDUCE_GRAD and UPDATE of every copy of a stage against its weight passes.
void check_weight_use(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults);

// Checks each program by itself: marks of fusion, UNSHARD and RESHARD, the promise. REQUIRES: actions are in range.
void check_programs(const Schedule& schedule, std::vector<Fault>& faults);

// A walk; one fault for each rank that does not reach its end, unless there is one at that place already.
void check_progress(const Schedule& schedule, SendMode mode, const Positions& positions, std::vector<Fault>& faults);

}  // namespace braid::schedule
