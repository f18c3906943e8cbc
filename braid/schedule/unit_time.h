// A schedule on the plainest clock: F, B, I and W take one slot each, a fused pair takes one, all else takes none. For
// pictures and tables; it does not know real costs (sim).
#pragma once

#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"

namespace braid {

// When each action of the schedule runs, in slots from 0; sends are buffered. Actions that can never run are left out.
Timeline unit_time(const Schedule& schedule);

}  // namespace braid
