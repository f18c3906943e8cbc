// One line for each way.
#include "braid/train/replicas.h"

#include "braid/sync/bucketed_all_reduce.h"
#include "braid/sync/zero.h"

namespace braid {
namespace {

std::unique_ptr<Replication> replication_of(const RunSpec& spec, StageModel& model) {
  const RankGroups& groups = model.groups();
  ParamStore& store = model.params();
  if (store.sharding().what != Sharded::Nothing) {
    return std::make_unique<Zero>(store, model.unit_sink(), ShardGroups{*groups.shards, *groups.copies, *groups.tied},
                                  model.stage_of_block());
  }
  return std::make_unique<BucketedAllReduce>(spec.sync, store, ReplicaGroups{*groups.replicas, *groups.tied});
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
