// One line for each way.
#include "braid/sync/make_replication.h"

#include <utility>

#include "braid/base/errors.h"
#include "braid/sync/bucketed_all_reduce.h"
#include "braid/sync/local_sgd.h"
#include "braid/sync/reducers/make_reducer.h"
#include "braid/sync/server/served_replica.h"
#include "braid/sync/zero.h"

namespace braid {
namespace {

LocalSgdPlan local_sgd_plan(const SyncSpec& spec, int64_t num_steps) {
  LocalSgdPlan plan{spec.period_warmup, spec.period, num_steps, std::nullopt};
  if (spec.replication == ReplicationKind::DiLoCo) plan.outer = OuterOptimizer{spec.outer_lr, spec.outer_momentum};
  return plan;
}

ReducerPlace reducer_place(const SyncGroups& groups, const ReplicationParts& parts) {
  ReducerPlace place{groups.replicas, std::nullopt, parts.seed};
  if (!parts.node) return place;
  place.nodes = split_into_nodes(groups.replicas, *parts.node);
  const bool tree = parts.store.reduction() == Reduction::Reproducible;
  check(!tree || place.nodes->continues_tree, "nodes continue the tree over replicas");
  return place;
}

}  // namespace

std::unique_ptr<Replication> make_replication(const SyncSpec& spec, const SyncGroups& groups, ReplicationParts parts) {
  ParamStore& store = parts.store;
  const ReplicaGroups replicas{groups.replicas, groups.tied};
  if (spec.replication == ReplicationKind::ParameterServer) {
    const ServedReplica::Groups workers{groups.replicas, groups.tied, parts.ranks_per_replica};
    return std::make_unique<ServedReplica>(ServedReplica::Specs{spec, parts.optimizer}, store, workers);
  }
  if (store.sharding().what != Sharded::Nothing) {
    const ShardGroups shards{groups.shards, groups.copies, groups.tied};
    return std::make_unique<Zero>(store, parts.unit_sink, shards, std::move(parts.stage_of_block));
  }
  if (spec.replication == ReplicationKind::LocalSgd || spec.replication == ReplicationKind::DiLoCo) {
    const auto plain = [&](const ReplicaGroups& over) {
      return std::make_unique<BucketedAllReduce>(spec, store, over);
    };
    return std::make_unique<LocalSgd>(local_sgd_plan(spec, parts.num_steps), store, replicas, plain);
  }
  AllReduceOptions options{.reducer = make_reducer(spec, reducer_place(groups, parts)), .model_part = parts.model_part};
  return std::make_unique<BucketedAllReduce>(spec, store, replicas, std::move(options));
}

}  // namespace braid
