// What of [sync] ranks with user modules cannot do.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/communicator.h"
#include "braid/spec/sync_spec.h"

namespace braid {

// On any modules. Empty: nothing.
std::vector<Problem> sync_problems(const SyncSpec& sync, const Communicator& replicas);

// In a pipeline: these, and what needs a layer's parameters or gradients to come and go with the layer.
std::vector<Problem> pipelined_sync_problems(const SyncSpec& sync, const Communicator& replicas);

}  // namespace braid
