// The schedule of a run's step, from its configuration: generated or read from a file, lowered, proved.
#pragma once

#include "braid/schedule/schedule.h"
#include "braid/schedule/version_plan.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the schedule of a data rank's step, with its reductions and transfers. Throws ConfigError with every
// condition of the schedule that the configuration breaks, in the configuration's keys, and for a file that cannot be
// read.
Schedule step_schedule(const RunSpec& spec, int data_rank);
// Returns the schedule of the data rank with the most microbatches.
Schedule step_schedule(const RunSpec& spec);
// The table of a run whose schedule is a file: its passes alone, as the file has them.
Schedule schedule_table(const RunSpec& spec);

// Returns the versions of the weights that its stages use.
schedule::VersionPlan version_plan(const RunSpec& spec, const Schedule& schedule);

// Throws ConfigError when step_schedule() of some data rank cannot run: with the grid around its faults when validate()
// finds any, with every fault of its layout, and, for a table with UPDATE actions, with everything that an asynchronous
// schedule refuses.
void refuse_faulty_schedule(const RunSpec& spec);

}  // namespace braid::train
