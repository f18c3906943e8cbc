// Reads and writes a cluster as TOML (docs/cluster_file.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "braid/plan/cluster.h"

namespace braid::plan {

inline constexpr int64_t kMostDevices = 1 << 24;  // limit for one cluster

// Parses a cluster file. Sorts the kinds of devices by their highest peak rate, the fastest first. `origin` names the
// text in messages. Throws ConfigError with all errors: missing keys, unknown keys, values that break their rule, and
// missing link rates, which a cluster of several devices or nodes needs.
Cluster parse_cluster(const std::string& text, const std::string& origin);

// Returns the cluster as TOML. parse_cluster() makes an equal cluster of it, except for the order of kinds and the last
// digits of numbers.
std::string cluster_text(const Cluster& cluster);

// Returns the preset (cluster_presets.h) of that name, or the cluster in the file at that path. Throws ConfigError
// about `key` if there is neither. Throws the errors of parse_cluster().
Cluster load_cluster(const std::string& name_or_path, const std::string& key);

// Returns the number of nodes of the smallest cluster in which each kind of device has the same fraction of the nodes
// as in `cluster`.
int fewest_nodes(const Cluster& cluster);

// Returns the cluster with `num_nodes` nodes, in which each kind of device keeps its fraction of the nodes. REQUIRES:
// `num_nodes` is at least 1. Throws ConfigError about `key` if `num_nodes` is not a multiple of fewest_nodes(), if
// there are several nodes but no network, or if there would be more than kMostDevices devices.
Cluster with_nodes(Cluster cluster, int num_nodes, const std::string& key);

}  // namespace braid::plan
