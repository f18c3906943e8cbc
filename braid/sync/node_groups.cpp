// Every rank gathers the nodes of all replicas, so all derive the same groups.
#include "braid/sync/node_groups.h"

#include <algorithm>
#include <bit>
#include <map>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"

namespace braid::sync {
NodeGroups split_into_nodes(Communicator& replicas, int node) {
  const std::vector<int> nodes = comm::gather(replicas, "nodes of replicas", node);
  std::map<int, int> sizes;
  for (const int each : nodes) ++sizes[each];
  const int size = sizes.at(node);
  const bool even = std::all_of(sizes.begin(), sizes.end(), [&](const auto& each) { return each.second == size; });
  if (!even) {
    throw ConfigError(
        {{"mesh.ranks_per_node", "",
          cat("must leave equally many of the ", replicas.size(), " replicas on every node that has some"), ""}});
  }
  const auto place = static_cast<int>(std::count(nodes.begin(), nodes.begin() + replicas.rank(), node));
  NodeGroups groups;
  groups.inside = replicas.split(node, replicas.rank(), "node");
  groups.across = replicas.split(place, replicas.rank(), "nodes");
  const bool powers_in_order =
      std::is_sorted(nodes.begin(), nodes.end()) && std::has_single_bit(static_cast<unsigned>(size));
  groups.continues_tree = size == 1 || size == replicas.size() || powers_in_order;
  return groups;
}

}  // namespace braid::sync
