// The positions of actions, one table for each op that occurs. Stages and microbatches must be in range.
#include "braid/schedule/rules.h"

#include <algorithm>

namespace braid::schedule {

int Positions::note(Op op, int stage, int micro, int index) {
  auto& positions = positions_[static_cast<size_t>(op)];
  const size_t micros = static_cast<size_t>(std::max(1, schedule_.num_microbatches));
  if (positions.empty()) positions.assign(schedule_.num_stages * micros, kMissing);
  int& first = positions[stage * micros + micro];
  const int earlier = first;
  if (first == kMissing) first = index;
  return earlier;
}

int Positions::at(Op op, int stage, int micro) const {
  const auto& positions = positions_[static_cast<size_t>(op)];
  const size_t micros = static_cast<size_t>(std::max(1, schedule_.num_microbatches));
  return positions.empty() ? kMissing : positions[stage * micros + micro];
}

Op Positions::weight_op(int stage, int micro) const {
  return at(Op::WeightGrad, stage, micro) == kMissing ? Op::FullBackward : Op::WeightGrad;
}

}  // namespace braid::schedule
