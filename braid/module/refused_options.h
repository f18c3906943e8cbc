// What of a program's options is refused for torch modules of its own: the rows of spec/combine.h about the features
// that the options stand for, and rules on values. The modules themselves are not looked at here.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/communicator.h"
#include "braid/schedule/schedule.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"

namespace braid {

// Of modules kept in step with those of the other `replicas`; `servers` is what parameter servers update with. Empty:
// nothing is refused.
std::vector<Problem> refused_of_replicas(const SyncSpec& sync, const OptimizerSpec& servers,
                                         const Communicator& replicas);

// Of a pipeline that follows `schedule`, its stages kept in step by `sync` with those of the data ranks `replicas`;
// null: there are none, and `sync` must say nothing.
std::vector<Problem> refused_of_pipeline(const Schedule& schedule, const SyncSpec& sync, const Communicator* replicas);

}  // namespace braid
