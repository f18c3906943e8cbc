// One line for each way.
#include "braid/train/replicas.h"

#include <utility>

#include "braid/base/errors.h"
#include "braid/sync/bucketed_all_reduce.h"
#include "braid/sync/local_sgd.h"
#include "braid/sync/reducers/make_reducer.h"
#include "braid/sync/server/served_replica.h"
#include "braid/sync/zero.h"

namespace braid {
namespace {

LocalSgdPlan local_sgd_plan(const RunSpec& spec) {
  LocalSgdPlan plan{spec.sync.period_warmup, spec.sync.period, spec.train.steps, std::nullopt};
  if (spec.sync.replication == "diloco") plan.outer = OuterOptimizer{spec.sync.outer_lr, spec.sync.outer_momentum};
  return plan;
}

ReducerPlace reducer_place(const RunSpec& spec, const RankGroups& groups) {
  ReducerPlace place{*groups.replicas, std::nullopt, spec.train.seed};
  if (spec.mesh.ranks_per_node == 0) return place;
  place.nodes = split_into_nodes(*groups.replicas, groups.world.rank() / spec.mesh.ranks_per_node);
  check(spec.train.reduction != "reproducible" || place.nodes->continues_tree, "nodes continue the tree over replicas");
  return place;
}

std::unique_ptr<Replication> replication_of(const RunSpec& spec, StageModel& model) {
  const RankGroups& groups = model.groups();
  ParamStore& store = model.params();
  if (spec.sync.replication == "parameter-server") {
    return std::make_unique<ServedReplica>(ServedReplica::Specs{spec.sync, spec.optimizer}, store, *groups.data);
  }
  if (store.sharding().what != Sharded::Nothing) {
    return std::make_unique<Zero>(store, model.unit_sink(), ShardGroups{*groups.shards, *groups.copies, *groups.tied},
                                  model.stage_of_block());
  }
  const ReplicaGroups replicas{*groups.replicas, *groups.tied};
  if (spec.sync.replication == "local-sgd" || spec.sync.replication == "diloco") {
    const auto plain = [&](const ReplicaGroups& over) {
      return std::make_unique<BucketedAllReduce>(spec.sync, store, over);
    };
    return std::make_unique<LocalSgd>(local_sgd_plan(spec), store, replicas, plain);
  }
  AllReduceOptions options{.reducer = make_reducer(spec.sync, reducer_place(spec, groups)),
                           .model_part = groups.at[Axis::Tensor]};
  return std::make_unique<BucketedAllReduce>(spec.sync, store, replicas, std::move(options));
}

}  // namespace

std::unique_ptr<Replication> make_replication(const RunSpec& spec, StageModel& model) {
  auto made = replication_of(spec, model);
  Replication* replication = made.get();
  model.sink().on_ready = [replication](const Parameter& param) { replication->ready(param); };
  if (model.params().shards_parameters()) {
    model.set_hooks({[replication](int block, Phase phase) { replication->acquire(block, phase); },
                     [replication](int block, Phase phase) { replication->release(block, phase); }});
  }
  return made;
}

}  // namespace braid
