// A schedule on the simplest clock, for pictures and tables: F, B, I, W and a fused pair take one slot each, all other
// actions none.
#pragma once

#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"

namespace braid::schedule {

// When each action of the schedule runs, in slots from 0; sends are buffered. Actions that can never run are left out.
Timeline unit_time(const Schedule& schedule);

}  // namespace braid::schedule
