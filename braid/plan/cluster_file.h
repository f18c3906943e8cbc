// A cluster as TOML (docs/cluster_file.md), read and written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "braid/plan/cluster.h"

namespace braid::plan {

inline constexpr int64_t kMostDevices = 1 << 24;  // of a cluster

// Throws ConfigError with everything that is wrong: keys that are missing, unknown or break their rule, rates that the
// numbers of nodes and devices call for. `origin` names the text. Kinds of devices are in the order of their highest
// peaks, whatever their order in the file.
Cluster parse_cluster(const std::string& text, const std::string& origin);

// parse_cluster() of it gives an equal cluster, but for that order and the last digits of numbers.
std::string cluster_text(const Cluster& cluster);

// The preset of that name, or the file at that path. Throws ConfigError at `key` where it is neither, and as
// parse_cluster().
Cluster load_cluster(const std::string& name_or_path, const std::string& key);

// The smallest cluster in which each kind has the same share of the nodes.
int fewest_nodes(const Cluster& cluster);

// With so many nodes, of the only kind; of several, as many of each as their shares are. `num_nodes` is at least 1.
// Throws ConfigError at `key` where several kinds cannot be shared out so.
Cluster with_nodes(Cluster cluster, int num_nodes, const std::string& key);

}  // namespace braid::plan
