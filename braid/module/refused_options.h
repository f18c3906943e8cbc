// Finds invalid options of programs with their own torch modules. Uses the rows of spec/combine.h for the features that
// the options turn on, and rules on single values. Does not check the modules.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/communicator.h"
#include "braid/schedule/schedule.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"

namespace braid::modules {

// Returns the problems of modules that `sync` replicates on `replicas`. `servers` is the optimizer of parameter
// servers. Empty: there are none.
std::vector<Problem> refused_of_replicas(const SyncSpec& sync, const OptimizerSpec& servers,
                                         const Communicator& replicas);

// Returns the problems of a pipeline with this schedule, whose stages `sync` replicates on the data ranks `replicas`.
// If `replicas` is null, there are no data ranks, and `sync` must have its defaults.
std::vector<Problem> refused_of_pipeline(const Schedule& schedule, const SyncSpec& sync, const Communicator* replicas);

}  // namespace braid::modules
