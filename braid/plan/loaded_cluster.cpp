// Loads a cluster by its name or from its file, and changes its number of nodes (cluster_file.h).
#include <algorithm>
#include <numeric>

#include "braid/base/checked_file.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/plan/cluster_file.h"
#include "braid/plan/cluster_presets.h"
#include "braid/spec/fields.h"

namespace braid::plan {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;

}  // namespace

Cluster load_cluster(const std::string& name_or_path, const std::string& key) {
  if (const auto preset = cluster_preset(name_or_path)) return *preset;
  const PathKind kind = path_kind(name_or_path);
  if (kind == PathKind::File || kind == PathKind::Other) {
    return parse_cluster(named_file_content({key, spec::toml_text(name_or_path), name_or_path}, kMostBytes),
                         name_or_path);
  }
  const auto names = cluster_preset_names();
  throw ConfigError({{key, spec::toml_text(name_or_path), cat("must be a file, or one of ", joined(names)),
                      nearest(name_or_path, names)}});
}

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

}  // namespace braid::plan
