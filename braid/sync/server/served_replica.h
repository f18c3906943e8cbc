// A rank as a worker of a parameter server. It sends its gradients to servers that hold the optimizer, and receives its
// parameters from them. The servers are outside the mesh. They are ranks of their own (server_ranks.h), or threads
// beside the ranks: server s runs in the process of worker s mod n of n. Each part of a model that is cut into stages
// and slices has its own servers, whose workers are the ranks that hold this part.
//
// The servers replace the all-reduce over replicas. Under "bsp" training equals that of other replication. Under "ssp"
// and "asp" no collective ties a step to another replica's step.
#pragma once

#include <memory>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/replication.h"
#include "braid/sync/server/server_client.h"
#include "braid/sync/server/server_errors.h"
#include "braid/sync/server/server_ranks.h"
#include "braid/sync/server/server_thread.h"

namespace braid::sync::server {

class ServedReplica final : public Replication, private PushCounts {
 public:
  struct Specs {
    const SyncSpec& sync;
    const OptimizerSpec& optimizer;
    int ranks_per_replica = 1;  // neighbouring workers of one replica: 2 if stages are mirrored
    // The workers' world with the ranks of the servers after them (server_ranks.h); null: servers are threads.
    Communicator* with_servers = nullptr;
  };
  // The workers are the ranks of groups.replicas. REQUIRES: `store` outlives this. Collective over the workers. The
  // servers start with the parameters of rank 0. Parameters that ranks of several groups of workers share stay equal
  // only under bulk synchronous servers.
  ServedReplica(const Specs& specs, param::ParamStore& store, const ReplicaGroups& groups);
  // Pushes the accumulated gradients, leaves the servers, and blocks until all workers have left the servers of this
  // rank. Aborts the world if that fails, or if an exception is in flight, so that no rank waits for this one in vain.
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
  // Returns the bytes sent to servers and to the other ranks of the replica.
  int64_t bytes_sent() const override;
  ReplicationTimes times() const override;
  RunRequest take_request() override { return client_->take_request(); }
  PushCounts* push_counts() override { return this; }

 private:
  int64_t own() override;
  int64_t of_lost(int worker) override { return client_->pushes_of_lost(worker); }
  ServedPart own_part(const Communicator& world);
  void start_servers(const Specs& specs);
  bool left_by_exception() const;
  at::Tensor flat_gradients() const { return store_.flat_grads().narrow(0, 0, store_.num_flat()); }
  void pull(ServerClient::Freshness freshness);
  ShardState state_here(optim::Optimizer& optimizer) const;

  const Consistency consistency_;
  param::ParamStore& store_;
  Communicator& workers_;
  Communicator& tied_;
  std::unique_ptr<Communicator> pair_;  // ranks of this replica with the same parameters; null: only this one
  const int exceptions_before_;
  const bool has_own_servers_;
  const KeyShares shares_;
  const std::shared_ptr<ServerErrors> errors_ = std::make_shared<ServerErrors>();
  std::vector<std::unique_ptr<ServerThread>> servers_;  // of this rank
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<ServerClient> client_;
  KeyedTensors masters_;  // tensors of the store
  at::Tensor scaled_;     // scaled gradients; undefined if none were scaled
  Replicas replicas_ = Replicas::Alike;
  int64_t bytes_within_replica_ = 0;
};

}  // namespace braid::sync::server
