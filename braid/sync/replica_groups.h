// The groups of ranks that hold the same parameters as this rank, or other parts of them.
#pragma once

#include "braid/comm/communicator.h"

namespace braid::sync {

// REQUIRES: the groups outlive whatever is given them.
struct ReplicaGroups {
  Communicator& replicas;  // all ranks with the same stages: they differ along kSampleAxes, or are a mirrored pair
  Communicator& shards;    // the replicas that hold the shards of one copy; as many as the store has parts
  Communicator& copies;    // the replicas that hold the same shard
  Communicator& tied;      // the ranks that share tied parameters (first and last stage of one replica); size 1 if none
};

}  // namespace braid::sync
