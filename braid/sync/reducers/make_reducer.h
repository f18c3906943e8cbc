// The reducer that a configuration asks for. It knows the kinds and nothing of what they do.
#pragma once

#include <memory>
#include <optional>

#include "braid/spec/sync_spec.h"
#include "braid/sync/grad_reducer.h"
#include "braid/sync/node_groups.h"

namespace braid::sync {

struct ReducerPlace {
  Communicator& replicas;           // outlives the reducer
  std::optional<NodeGroups> nodes;  // where sums go node by node: then only sync.compression none, bfloat16, float16
  uint64_t seed = 0;
};

// sync.compression and its keys. In a group of one there is nothing to send: plain.
std::unique_ptr<GradReducer> make_reducer(const SyncSpec& spec, ReducerPlace place);

}  // namespace braid::sync
