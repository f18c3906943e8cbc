// Creates the Replication that [sync] asks for.
#include "braid/sync/make_replication.h"

#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/sync/local_sgd.h"
#include "braid/sync/reducers/make_reducer.h"
#include "braid/sync/server/served_replica.h"
#include "braid/sync/zero.h"

namespace braid::sync {
namespace {

LocalSgdPlan local_sgd_plan(const SyncSpec& spec, int64_t num_steps) {
  LocalSgdPlan plan{spec.period_warmup, spec.period, num_steps, std::nullopt};
  if (spec.replication == ReplicationKind::DiLoCo) plan.outer = OuterOptimizer{spec.outer_lr, spec.outer_momentum};
  return plan;
}

void check_one_group(const param::ParamStore& store, const char* who) {
  for (const param::Parameter& param : store.params()) {
    const bool all = mesh::summed_axes(param.placement) == mesh::kSampleAxes;
    check(all, cat(param.name, ": ", who, " keeps one group of ranks for all parameters, which hold copies of them"));
  }
}

std::unique_ptr<Replication> make_all_reduce(const SyncSpec& spec, const ReplicaGroups& groups,
                                             ReplicationParts parts) {
  AllReduceOptions options{.reducer = make_reducer(spec, groups.replicas, parts.seed), .model_part = parts.model_part};
  for (SumGroup& each : parts.sum_groups) {
    each.reducer = make_reducer(spec, *each.ranks, parts.seed);
    options.apart.push_back(std::move(each));
  }
  return std::make_unique<BucketedAllReduce>(spec, parts.store, groups, std::move(options));
}

}  // namespace

std::unique_ptr<Replication> make_replication(const SyncSpec& spec, const ReplicaGroups& groups,
                                              ReplicationParts parts) {
  param::ParamStore& store = parts.store;
  if (spec.replication == ReplicationKind::ParameterServer) {
    check_one_group(store, "a parameter server");
    const server::ServedReplica::Specs specs{spec, parts.optimizer, parts.ranks_per_replica, parts.with_servers};
    return std::make_unique<server::ServedReplica>(specs, store, groups);
  }
  if (store.sharding().what != param::Sharded::Nothing) {
    check_one_group(store, "sharding");
    BlockOrder order{std::move(parts.stage_of_block), std::move(parts.runs_backward)};
    return std::make_unique<Zero>(store, parts.unit_sink, groups,
                                  ZeroOptions{std::move(order), parts.parameter_memory});
  }
  if (spec.replication == ReplicationKind::LocalSgd || spec.replication == ReplicationKind::DiLoCo) {
    check_one_group(store, "averaging of weights");
    const auto plain = [&](const ReplicaGroups& over) {
      return std::make_unique<BucketedAllReduce>(spec, store, over);
    };
    return std::make_unique<LocalSgd>(local_sgd_plan(spec, parts.num_steps), store, groups, plain);
  }
  return make_all_reduce(spec, groups, std::move(parts));
}

}  // namespace braid::sync
