// A rank as a worker of a parameter server: its gradients go to servers that hold the optimizer, its parameters come
// from them. The servers are threads beside the ranks, outside the mesh. Each part of a model that is cut into stages
// and slices has servers of its own, whose workers are the ranks that hold this part.
//
// Sums over replicas become the servers' business: under "bsp" training is that of the other ways of keeping replicas
// in step; under "ssp" and "asp" no collective ties one step to another replica's.
#pragma once

#include <memory>

#include "braid/comm/communicator.h"
#include "braid/comm/rank_channel.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/replication.h"
#include "braid/sync/server/local_servers.h"
#include "braid/sync/server/server_client.h"

namespace braid::sync::server {

class ServedReplica final : public Replication {
 public:
  struct Specs {
    const SyncSpec& sync;
    const OptimizerSpec& optimizer;
    int ranks_per_replica = 1;  // neighbours among the workers that are of one replica: 2 where stages are mirrored
  };
  // The workers are groups.replicas; their kind is Thread. `store` outlives this. Collective over the workers: the
  // servers start with the parameters of rank 0. Bulk synchronous servers alone keep alike what ranks of several groups
  // of workers share.
  ServedReplica(const Specs& specs, param::ParamStore& store, const ReplicaGroups& groups);
  // Pushes what has been added up and leaves the servers, which end with their last owner. The world is aborted where
  // that fails, and where an exception is on its way: no rank waits for this one in vain.
  ~ServedReplica() override;

  void finish() override;
  UpdateBy update(const optim::OptimizerStep& step) override;
  void updated() override;
  GradientsOf gradients() const override { return GradientsOf::OwnReplica; }
  Replicas replicas() const override { return replicas_; }
  void meet() override;
  void fetch_states(optim::Optimizer& optimizer) override;
  void saved(optim::Optimizer& optimizer) override;
  void restored(optim::Optimizer& optimizer) override;
  // To servers, and to the other ranks of the replica.
  int64_t bytes_sent() const override;
  ReplicationTimes times() const override;

 private:
  std::shared_ptr<LocalServers> shared_servers(const Specs& specs) const;
  at::Tensor flat_gradients() const { return store_.flat_grads().narrow(0, 0, store_.num_flat()); }
  void pull(ServerClient::Freshness freshness);
  ShardState state_here(optim::Optimizer& optimizer) const;

  const Consistency consistency_;
  param::ParamStore& store_;
  Communicator& workers_;
  Communicator& tied_;
  std::unique_ptr<Communicator> pair_;  // the ranks of this replica with the same parameters; null: this one alone
  std::shared_ptr<LocalServers> servers_;
  std::unique_ptr<comm::RankChannel> channel_;
  std::unique_ptr<ServerClient> client_;
  KeyedTensors masters_;  // the store's
  at::Tensor scaled_;     // gradients as they are pushed, where they are not the store's own
  Replicas replicas_ = Replicas::Alike;
  int64_t bytes_within_replica_ = 0;
};

}  // namespace braid::sync::server
