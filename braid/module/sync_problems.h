// What of [sync] is refused for users' modules.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/communicator.h"
#include "braid/spec/sync_spec.h"

namespace braid {

// What is refused for any modules. Empty: nothing.
std::vector<Problem> sync_problems(const SyncSpec& sync, const Communicator& replicas);

// What is refused in a pipeline: the same, and what gathers and frees a layer's parameters or gradients layer by layer.
std::vector<Problem> pipelined_sync_problems(const SyncSpec& sync, const Communicator& replicas);

}  // namespace braid
