// The same cluster with another number of nodes (cluster_file.h).
#include <algorithm>
#include <numeric>

#include "braid/base/text.h"
#include "braid/cluster/cluster_file.h"

namespace braid {

int fewest_nodes(const Cluster& cluster) {
  int shares = 0;
  for (const DeviceGroup& group : cluster.devices) shares = std::gcd(shares, group.nodes);
  return cluster.num_nodes() / shares;
}

Cluster with_nodes(Cluster cluster, int num_nodes, const std::string& key) {
  const int fewest = fewest_nodes(cluster), shares = cluster.num_nodes() / fewest;
  const int below = num_nodes / fewest, rest = num_nodes % fewest;
  if (rest != 0) {
    const int64_t times = std::max(1, below + (2 * int64_t{rest} > fewest ? 1 : 0));
    throw ConfigError({{key, cat(num_nodes), cat("must be a multiple of ", fewest, ", for each kind to keep its share"),
                        cat(times * fewest)}});
  }
  for (DeviceGroup& group : cluster.devices) group.nodes = group.nodes / shares * below;
  if (cluster.num_nodes() > 1 && cluster.network.bytes_per_second == 0) {
    throw ConfigError({{key, cat(num_nodes), "needs a [network] in the cluster file", "1"}});
  }
  if (const int64_t devices = cluster.num_devices(); devices > kMostDevices) {
    const int64_t nearest = num_nodes * kMostDevices / devices / fewest * fewest;
    throw ConfigError({{key, cat(num_nodes), cat("must leave at most ", kMostDevices, " devices, not ", devices),
                        nearest > 0 ? cat(nearest) : ""}});
  }
  return cluster;
}

}  // namespace braid
