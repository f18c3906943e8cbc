// The rules of a valid schedule, used only by validate(). Each check adds the faults that it finds, in any order.
#pragma once

#include <array>
#include <vector>

#include "braid/schedule/schedule.h"
#include "braid/schedule/validate.h"

namespace braid::schedule {

// The positions of actions in a schedule: for every op, stage and microbatch, the index in the owner's program.
class Positions {
 public:
  static constexpr int kMissing = -1;

  // Makes an empty table. It takes memory only for ops that occur.
  explicit Positions(const Schedule& schedule) : schedule_(schedule) {}

  // Notes that the owner of (stage, micro) runs `op` at `index`. Returns kMissing the first time. Afterwards it returns
  // the first index, which it keeps. For ops of a whole stage, `micro` is the first microbatch of the stage's copy.
  int note(Op op, int stage, int micro, int index);

  // Returns the first index in the owner's program, or kMissing.
  int at(Op op, int stage, int micro) const;

  // Returns true if the op occurs at all.
  bool any(Op op) const { return !positions_[static_cast<size_t>(op)].empty(); }

  // Return the index and the op of the microbatch's weight pass: W, or else B. The index is kMissing if there is
  // neither.
  int weight_pass(int stage, int micro) const { return at(weight_op(stage, micro), stage, micro); }
  Op weight_op(int stage, int micro) const;

 private:
  const Schedule& schedule_;
  std::array<std::vector<int>, kNumOps> positions_;  // by op, then stage and microbatch
};

// Checks that the passes and transfers of every (stage, microbatch) are present, in order and matched.
void check_microbatches(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults);

// Checks that every copy of a stage has its REDUCE_GRAD and UPDATE, and that they come after the weight passes they
// include.
void check_weight_use(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults);

// Checks each program by itself: marks of fusion, UNSHARD and RESHARD, and the promise. REQUIRES: stages and
// microbatches of all actions are in range.
void check_programs(const Schedule& schedule, std::vector<Fault>& faults);

// Checks by a walk that every rank reaches the end of its program. Adds a fault for each rank that does not, unless the
// action where it stops already has one.
void check_progress(const Schedule& schedule, SendMode mode, const Positions& positions, std::vector<Fault>& faults);

}  // namespace braid::schedule
