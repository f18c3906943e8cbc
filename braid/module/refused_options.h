// Finds invalid options of programs with their own torch modules. Uses the rows of spec/combine.h for the features that
// the options turn on, and rules on single values. Does not check the modules.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/communicator.h"
#include "braid/module/synced_modules.h"
#include "braid/schedule/schedule.h"

namespace braid::modules {

// Returns the problems of modules that `specs` replicate on `replicas`, and of the folders. Empty: there are none.
std::vector<Problem> refused_of_replicas(const SyncedModules::Specs& specs, const Communicator& replicas);

// Returns the problems of a pipeline with this schedule, whose stages `specs` replicate on the data ranks `replicas`.
// If `replicas` is null, there are no data ranks, and `specs.sync` must have its defaults.
std::vector<Problem> refused_of_pipeline(const Schedule& schedule, const SyncedModules::Specs& specs,
                                         const Communicator* replicas);

}  // namespace braid::modules
