// The runs that go on without a worker whose process dies (docs/parameter_server.md).
#pragma once

#include "braid/spec/batch_shares.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

// Returns true if a run of `spec`, with all ranks on one host and started by its launcher, goes on without a lost
// worker:
//   * no worker waits for another, and each is a replica by itself that holds no server;
//   * the number of its pushes is the number of steps that servers have of it;
//   * its samples in a step are as many as another worker reads.
// Rank 0 is the exception: it reports the run, and its loss restarts it.
inline bool workers_are_losable(const RunSpec& spec) {
  const bool apart = spec.sync.replication == ReplicationKind::ParameterServer &&
                     spec.sync.servers_on == ServersOn::Own && spec.sync.consistency == Consistency::Asp &&
                     num_ranks(spec.mesh) == spec.mesh.data;
  const bool counted = spec.sync.push_every == 1 && spec.train.on_spike == OnSpike::Stop &&
                       spec.train.dtype != DType::Float16 && has_equal_shares(spec.mesh);
  const bool reached = rank_places(spec.run, 1) == RankPlaces::OneHost && spec.train.device == DeviceKind::Cpu &&
                       chosen_engine(spec.run, 1) == CommEngine::Shm && !spec.checkpoint.async;
  return apart && counted && reached;
}

}  // namespace braid::spec
