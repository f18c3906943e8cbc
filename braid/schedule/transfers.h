// The transfers that an action of a schedule gives rise to.
#pragma once

#include <optional>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// The receive that brings an F, B or I its tensor from another rank, if one does.
std::optional<Action> receive_before(const Schedule& schedule, const Action& action);

// A send and its receive on the rank of the neighbouring stage.
struct StageTransfer {
  Action send;
  Action receive;
};

// The transfer that takes what an F, B or I makes to another rank, if it goes there.
std::optional<StageTransfer> transfer_after(const Schedule& schedule, const Action& action);

}  // namespace braid::schedule
