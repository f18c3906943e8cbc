// Creates the reducer that a configuration selects.
#pragma once

#include <memory>

#include "braid/spec/sync_spec.h"
#include "braid/sync/grad_reducer.h"

namespace braid::sync {

// Returns the reducer for sync.compression and its keys. In a group of one it is a PlainReducer. REQUIRES: `replicas`
// outlives the reducer.
std::unique_ptr<GradReducer> make_reducer(const SyncSpec& spec, Communicator& replicas, uint64_t seed);

}  // namespace braid::sync
