// Every rank hears everybody's node and draws the same conclusions.
#include "braid/sync/node_groups.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <bit>
#include <map>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::sync {
namespace {

std::vector<int64_t> everybodys(int64_t own, Communicator& group) {
  const at::Tensor mine = at::full({1}, own, at::kLong), all = at::empty({group.size()}, at::kLong);
  group.all_gather(all, mine).wait_host();
  const int64_t* at = all.const_data_ptr<int64_t>();
  return {at, at + group.size()};
}

}  // namespace

NodeGroups split_into_nodes(Communicator& replicas, int node) {
  const std::vector<int64_t> nodes = everybodys(node, replicas);
  std::map<int64_t, int> sizes;
  for (const int64_t each : nodes) ++sizes[each];
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
