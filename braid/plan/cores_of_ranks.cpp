// Cores shared out to the ranks of a host.
#include "braid/plan/cores_of_ranks.h"

#include <algorithm>

#include "braid/spec/rank_hosts.h"
#include "braid/spec/thread_count.h"

namespace braid::plan {

Cluster with_cores_of_ranks(Cluster cluster, const RunSpec& spec) {
  if (!cluster.devices.front().shared_cores) return cluster;
  const int hosts = cluster.num_nodes(), ranks = spec::most_ranks_of_host(num_ranks(spec.mesh), hosts);
  for (DeviceGroup& group : cluster.devices) {
    const auto cores =
        std::min(std::max(group.per_node / ranks, 1), spec::threads_per_rank(spec, group.per_node * hosts));
    for (PeakRate& peak : group.peaks) peak.flops *= cores;
    group.memory_bytes_per_second *= cores;
    for (StreamRate& row : group.streams) row.bytes_per_second *= cores;
    for (AttentionRate& row : group.attention) row.forward *= cores, row.backward *= cores;
    group.memory_bytes *= static_cast<double>(group.per_node) / ranks;
    if (ranks > group.per_node && num_replicas(spec.mesh) > 1)
      group.skew = 0;  // who waits leaves its core to another replica
  }
  return cluster;
}

double ranks_per_core(const PlannedRun& run) {
  const std::vector<DeviceGroup>& kinds = run.cluster.devices;
  if (!kinds.front().shared_cores) return 0;
  const auto cores = [&](const StageLoad& stage) { return kinds[stage.devices].per_node; };
  return static_cast<double>(spec::most_ranks_of_host(run.layout.num_ranks(), run.cluster.num_nodes())) /
         cores(std::ranges::min(run.layout.stages, {}, cores));
}

double cores_of_replica(const PlannedRun& run, double crowd) {
  const double mean =
      static_cast<double>(run.spec.train.batch) / run.spec.train.microbatch / num_replicas(run.spec.mesh);
  const double share = run.cluster.devices.size() == 1 ? run.layout.microbatches / mean : 1;
  return std::min<double>(run.layout.pipe, run.layout.pipe / crowd * share);
}

}  // namespace braid::plan
