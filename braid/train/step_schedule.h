// The schedule of a run's step: generates it or reads it from a file, adds reductions and transfers, and validates it.
#pragma once

#include "braid/schedule/schedule.h"
#include "braid/schedule/version_plan.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the schedule of a data rank's step, with its reductions and transfers. Throws ConfigError with every
// condition of the schedule that the configuration breaks, in terms of its keys, and if a schedule's file cannot be
// read.
Schedule step_schedule(const RunSpec& spec, int data_rank);
// Returns the schedule of the data rank with the most microbatches.
Schedule step_schedule(const RunSpec& spec);
// Returns the table of a run whose schedule is a file: only the passes in that file, without reductions and transfers.
Schedule schedule_table(const RunSpec& spec);

// Returns the plan of the versions of the weights that the stages of `schedule` use.
schedule::VersionPlan version_plan(const RunSpec& spec, const Schedule& schedule);

// Throws ConfigError if step_schedule() of some data rank cannot run. Its problems are:
//
//   * the faults that validate() finds, with the grid around them;
//   * the faults of the layout;
//   * mirrored stages, if replicas run apart;
//   * features of the run that the schedule refuses, such as those of an asynchronous one, if it is read from a file.
void refuse_faulty_schedule(const RunSpec& spec);

}  // namespace braid::train
