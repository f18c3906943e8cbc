// Times of communication between ranks, by the alpha-beta model: a latency for each message of a chain, and bytes over
// the rate of the slowest link.
#pragma once

#include <vector>

#include "braid/plan/cluster.h"

namespace braid::plan {

// Ranks that exchange something, the same number of them on each node that has any.
struct RankGroup {
  int size = 1;
  int per_node = 1;

  bool across_nodes() const { return size > per_node; }
};

// The links of a group. Within a node every device has the node's link; a ring across nodes enters each of them through
// as many network links as members are there, since as many rings turn at once (NCCL's).
class GroupLinks {
 public:
  GroupLinks(const Cluster& cluster, RankGroup group);

  int size() const { return size_; }

  // Returns the seconds of an all-reduce of `bytes` on every rank. Ring: 2 (n-1) messages, 2 (n-1)/n of the bytes;
  // tree: 2 log2(n) messages, 2 x the bytes; the faster of the two (Thakur et al., "Optimization of Collective
  // Communication Operations in MPICH", 2005). Where the cluster has measurements (Cluster::all_reduces), the formula
  // is multiplied by measured over predicted time of the same group, or of the group nearest in size that also stays in
  // a node or also leaves it. The factor is interpolated between two sizes of message and constant beyond them.
  double all_reduce_seconds(double bytes) const;
  // Multiplied by the same factor as all-reduces. Rings, n-1 messages and (n-1)/n of the bytes: of `bytes` on every
  // rank after the gather, or before the sum.
  double all_gather_seconds(double bytes) const;
  double reduce_scatter_seconds(double bytes) const { return all_gather_seconds(bytes); }
  // Returns the time of an all-to-all of `bytes` on every rank: n-1 messages, (n-1)/n of the bytes over the slowest
  // link of the group.
  double all_to_all_seconds(double bytes) const;
  // One message to a neighbour, over the slowest link that lies between two of them.
  double send_seconds(double bytes) const;

 private:
  // Seconds measured over those of the formula, by the logarithm of bytes.
  struct Measured {
    double log_bytes = 0, ratio = 1;
  };
  void take_measured(const Cluster& cluster, RankGroup group);
  double formula_seconds(double bytes) const;
  double ratio(double bytes) const;

  int size_;
  double rate_, latency_;  // of a ring
  double link_rate_;       // of one pair
  std::vector<Measured> measured_;
};

}  // namespace braid::plan
