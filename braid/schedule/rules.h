// The rules of a sound schedule, for validate() alone. Each adds the faults it finds, in any order.
#pragma once

#include <vector>

#include "braid/schedule/positions.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/validate.h"

namespace braid::schedule {

// Passes and transfers of every (stage, microbatch): present, in order, matched.
void check_microbatches(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults);

// REDUCE_GRAD and UPDATE of every copy of a stage against its weight passes.
void check_weight_use(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults);

// Checks each program by itself: marks of fusion, UNSHARD and RESHARD, the promise. REQUIRES: actions are in range.
void check_programs(const Schedule& schedule, std::vector<Fault>& faults);

// A walk; one fault for each rank that does not reach its end, unless there is one at that place already.
void check_progress(const Schedule& schedule, SendMode mode, const Positions& positions, std::vector<Fault>& faults);

}  // namespace braid::schedule
