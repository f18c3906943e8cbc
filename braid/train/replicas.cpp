// One line for each value of sync.replication.
#include "braid/train/replicas.h"

#include "braid/sync/bucketed_all_reduce.h"

namespace braid {

std::unique_ptr<Replication> make_replication(const RunSpec& spec, ParamStore& store, const RankGroups& groups) {
  return std::make_unique<BucketedAllReduce>(spec.sync, store, ReplicaGroups{*groups.replicas, *groups.tied});
}

}  // namespace braid
