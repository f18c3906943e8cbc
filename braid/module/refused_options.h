// Refuses options of programs with their own torch modules: by the rows of spec/combine.h for the features that the
// options turn on, and by rules on values. The modules themselves are checked elsewhere.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/communicator.h"
#include "braid/schedule/schedule.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"

namespace braid::modules {

// Returns the problems of modules replicated on `replicas`; `servers` is the optimizer of parameter servers. Empty:
// nothing is refused.
std::vector<Problem> refused_of_replicas(const SyncSpec& sync, const OptimizerSpec& servers,
                                         const Communicator& replicas);

// Returns the problems of a pipeline with this schedule, its stages replicated by `sync` on the data ranks `replicas`.
// Null: there are none, and `sync` must have its defaults.
std::vector<Problem> refused_of_pipeline(const Schedule& schedule, const SyncSpec& sync, const Communicator* replicas);

}  // namespace braid::modules
