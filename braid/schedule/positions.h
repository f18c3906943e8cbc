// Where a schedule runs what: for every op, stage and microbatch, the index in its owner's program. It judges nothing.
#pragma once

#include <array>
#include <vector>

#include "braid/schedule/schedule.h"

namespace braid {

class Positions {
 public:
  static constexpr int kMissing = -1;

  // Empty. Space grows with the ops that occur.
  explicit Positions(const Schedule& schedule) : schedule_(schedule) {}

  // Notes that the owner of (stage, micro) runs `op` at `index`. Returns kMissing when that is the first time, and the
  // first index else, which stays. For ops of a whole stage micro is the first of the copy.
  int note(Op op, int stage, int micro, int index);

  // Where the owner runs it first, or kMissing.
  int at(Op op, int stage, int micro) const;

  // Whether the op occurs at all.
  bool any(Op op) const { return !positions_[static_cast<size_t>(op)].empty(); }

  // Where the microbatch's weight gradient is made, by W or else B, or kMissing; and which of the two it is.
  int weight_pass(int stage, int micro) const { return at(weight_op(stage, micro), stage, micro); }
  Op weight_op(int stage, int micro) const;

 private:
  const Schedule& schedule_;
  std::array<std::vector<int>, kNumOps> positions_;  // by op, then stage and microbatch
};

}  // namespace braid
