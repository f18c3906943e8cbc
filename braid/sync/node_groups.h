// The replicas of a rank by node: those on the same node, and those with the same place on other nodes. Also counts the
// bytes that ring collectives send.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::sync {

// Returns the bytes that a rank sends in an all-gather into `whole`, or a reduce-scatter of it: (n - 1) / n of its
// size. This is for the ring algorithm (Patarasuk & Yuan 2009), which is optimal.
inline int64_t one_way_bytes(const at::Tensor& whole, int ranks) {
  return static_cast<int64_t>(whole.nbytes()) * (ranks - 1) / ranks;
}

// Returns the bytes that a rank sends in an all-reduce, which is a reduce-scatter and an all-gather.
inline int64_t all_reduce_bytes(const at::Tensor& whole, int ranks) { return 2 * one_way_bytes(whole, ranks); }

struct NodeGroups {
  std::unique_ptr<Communicator> inside;  // the replicas on this node, in order of rank
  std::unique_ptr<Communicator> across;  // the replicas with this rank's place on their nodes, in order of rank
  // True if summing node by node gives the balanced tree of communicator.h, bit for bit. This holds if node k holds
  // ranks k m .. k m + m - 1 and m is a power of two, for any number of nodes. It also holds if there is one node, or
  // one replica on each node.
  bool continues_tree = false;
};

// Collective over `replicas`; blocks. `node` is any number that identifies this rank's node. Throws ConfigError on all
// ranks unless all nodes hold equally many replicas.
NodeGroups split_into_nodes(Communicator& replicas, int node);

}  // namespace braid::sync
