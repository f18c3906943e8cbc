// A replica as a worker of a parameter server: its gradients go to servers that hold the optimizer, its parameters come
// from them. The servers are threads beside the ranks, outside the mesh; the ranks of `data` are the workers.
//
// Sums over replicas become the servers' business: under "bsp" training is that of the other ways of keeping replicas
// in step; under "ssp" and "asp" no collective ties one step to another rank's.
#pragma once

#include <memory>

#include "braid/comm/communicator.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/replication.h"
#include "braid/sync/server/local_servers.h"
#include "braid/sync/server/server_client.h"

namespace braid {

class ServedReplica final : public Replication {
 public:
  struct Specs {
    const SyncSpec& sync;
    const OptimizerSpec& optimizer;
  };
  // `store` and `data`, whose ranks are threads of this process, outlive this. Collective over `data`: the servers
  // start with the parameters of rank 0.
  ServedReplica(const Specs& specs, ParamStore& store, Communicator& data);
  // Leaves the servers; the last one ends them. When an exception is on its way, the channel just closes.
  ~ServedReplica() override;

  void ready(const Parameter&) override {}
  void flush() override {}
  void finish() override;
  UpdateBy update(const OptimizerStep& step) override;
  void updated() override;
  void meet() override;
  void fetch_moments(AdamW& optimizer) override;
  void restored(const AdamW& optimizer) override;
  // To and from servers.
  int64_t bytes_sent() const override;
  ReplicationTimes times() const override;

 private:
  std::shared_ptr<LocalServers> shared_servers(const Specs& specs) const;
  void pull(ServerClient::Freshness freshness);
  ShardState state_here(const AdamW* optimizer) const;

  ParamStore& store_;
  Communicator& data_;
  std::shared_ptr<LocalServers> servers_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<ServerClient> client_;
  KeyedTensors masters_;  // the store's
  at::Tensor scaled_;     // gradients as they are pushed, where they are not the store's own
};

}  // namespace braid
