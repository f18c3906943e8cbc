// Creates the reducer that a configuration selects.
#pragma once

#include <memory>
#include <optional>

#include "braid/spec/sync_spec.h"
#include "braid/sync/grad_reducer.h"
#include "braid/sync/node_groups.h"

namespace braid::sync {

struct ReducerPlace {
  Communicator& replicas;  // outlives the reducer
  // Set if gradients are summed node by node. Then sync.compression is none, bfloat16 or float16.
  std::optional<NodeGroups> nodes;
  uint64_t seed = 0;
};

// Returns the reducer for sync.compression and its keys. In a group of one it is a PlainReducer.
std::unique_ptr<GradReducer> make_reducer(const SyncSpec& spec, ReducerPlace place);

}  // namespace braid::sync
