// The replicas of a rank by node: those on the same one, and those with the same place on the others. Bytes sent by
// rings.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::sync {

// Bytes that a rank sends in a collective by the ring algorithm (Patarasuk & Yuan 2009), which is optimal.

// Returns the bytes of an all-gather into `whole` or a reduce-scatter of it: (n - 1) / n of its size.
inline int64_t one_way_bytes(const at::Tensor& whole, int ranks) {
  return static_cast<int64_t>(whole.nbytes()) * (ranks - 1) / ranks;
}

// Returns the bytes of an all-reduce: a reduce-scatter and an all-gather.
inline int64_t all_reduce_bytes(const at::Tensor& whole, int ranks) { return 2 * one_way_bytes(whole, ranks); }

struct NodeGroups {
  std::unique_ptr<Communicator> inside;  // the replicas on this node, in order of rank
  std::unique_ptr<Communicator> across;  // the replicas with this one's place on their nodes, in order of node
  // Sums node by node are the balanced tree of communicator.h, bit for bit: node k holds ranks k m .. k m + m - 1 and m
  // is a power of two, whatever the number of nodes; or there is one node, or one replica on each.
  bool continues_tree = false;
};

// `node` of this rank: any number, equal on one node only. Collective over `replicas`, blocks. Throws ConfigError on
// all ranks when the nodes do not hold equally many.
NodeGroups split_into_nodes(Communicator& replicas, int node);

}  // namespace braid::sync
