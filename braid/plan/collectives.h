// Times of communication between ranks by the alpha-beta model: a latency for each message that must wait for the one
// before it, plus bytes divided by the rate of the slowest link.
#pragma once

#include <vector>

#include "braid/plan/cluster.h"

namespace braid::plan {

// A group of ranks that communicate. Each node of the group has `per_node` of them.
struct RankGroup {
  int size = 1;
  int per_node = 1;

  bool across_nodes() const { return size > per_node; }
};

// The links of a group. Within a node every device has the node's link. Across nodes NCCL runs as many rings at once as
// the group has ranks on a node. Together the rings use that many network links of each node.
class GroupLinks {
 public:
  GroupLinks(const Cluster& cluster, RankGroup group);

  int size() const { return size_; }

  // Returns the seconds of an all-reduce of `bytes` on every rank: the faster of a ring and a tree (Thakur et al.,
  // "Optimization of Collective Communication Operations in MPICH", 2005).
  //
  //   ring   2 (n-1) messages, 2 (n-1)/n of the bytes
  //   tree   2 log2(n) messages, 2 x the bytes
  //
  // If the cluster has measurements (Cluster::all_reduces), the formula's time is multiplied by a correction factor:
  // measured time divided by the formula's. The measurements are those of the same group. If there are none, they are
  // those of the group nearest in size, which stays within a node or spans nodes as this group does. The factor is
  // interpolated between message sizes that were measured, and constant beyond them.
  double all_reduce_seconds(double bytes) const;
  // Return the seconds of a ring: n-1 messages, (n-1)/n of the bytes. Every rank has `bytes` after the all-gather, or
  // before the reduce-scatter. The correction factor applies here too.
  double all_gather_seconds(double bytes) const;
  double reduce_scatter_seconds(double bytes) const { return all_gather_seconds(bytes); }
  // Returns the seconds of an all-to-all of `bytes` on every rank: n-1 messages, (n-1)/n of the bytes over the slowest
  // link of the group.
  double all_to_all_seconds(double bytes) const;
  // Returns the seconds of one message to a neighbour, over the slowest link between two neighbours of the group.
  double send_seconds(double bytes) const;

 private:
  // Measured seconds divided by the formula's seconds, for one message size.
  struct Measured {
    double log_bytes = 0, ratio = 1;
  };
  void take_measured(const Cluster& cluster, RankGroup group);
  double formula_seconds(double bytes) const;
  double ratio(double bytes) const;

  int size_;
  double rate_, latency_;  // of all rings together: bytes per second, seconds of a message
  double link_rate_;       // bytes per second between one pair of neighbours
  std::vector<Measured> measured_;
};

}  // namespace braid::plan
