// Neighbours on other ranks.
#include "braid/schedule/transfers.h"

#include <utility>

namespace braid::schedule {
namespace {

// True when `stage` has a neighbour at `offset` (-1 or +1) that lives on another rank.
bool crosses(const Schedule& schedule, const Action& action, int offset) {
  const int other = action.stage + offset;
  if (other < 0 || other >= schedule.num_stages) return false;
  return schedule.rank_of(action.stage, action.micro) != schedule.rank_of(other, action.micro);
}

}  // namespace

std::optional<Action> receive_before(const Schedule& schedule, const Action& action) {
  const auto [stage, micro] = std::pair(action.stage, action.micro);
  if (action.op == Op::Forward && crosses(schedule, action, -1)) return Action{Op::RecvForward, stage, micro};
  if (goes_back(action.op) && crosses(schedule, action, +1)) return Action{Op::RecvBackward, stage, micro};
  return std::nullopt;
}

std::optional<StageTransfer> transfer_after(const Schedule& schedule, const Action& action) {
  const auto [stage, micro] = std::pair(action.stage, action.micro);
  if (action.op == Op::Forward && crosses(schedule, action, +1)) {
    return StageTransfer{{Op::SendForward, stage, micro}, {Op::RecvForward, stage + 1, micro}};
  }
  if (goes_back(action.op) && crosses(schedule, action, -1)) {
    return StageTransfer{{Op::SendBackward, stage, micro}, {Op::RecvBackward, stage - 1, micro}};
  }
  return std::nullopt;
}

}  // namespace braid::schedule
