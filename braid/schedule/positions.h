// Positions of actions in a schedule: for every op, stage and microbatch, the index in its owner's program.
#pragma once

#include <array>
#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

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

}  // namespace braid::schedule
