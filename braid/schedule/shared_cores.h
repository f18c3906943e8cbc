// Plays a schedule whose ranks share fewer cores than they are.
#pragma once

#include "braid/schedule/cost_model.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"

namespace braid::schedule {

// The times of every action where the ranks have `cores` between them, which may be a fraction: while k of them
// compute, each does so at min(1, cores / k) of its speed (processor sharing). An action begins when its rank is free
// and what it needs is made; transfers take no time. `schedule` has none, and can run to its end (check).
//
// Time is linear in actions times ranks, memory in actions.
Timeline simulate_sharing(const Schedule& schedule, const CostModel& cost, double cores);

}  // namespace braid::schedule
