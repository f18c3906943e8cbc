// Rings and trees.
#include "braid/predict/collectives.h"

#include <algorithm>
#include <cmath>

namespace braid {

GroupLinks::GroupLinks(const Cluster& cluster, RankGroup group) : size_(group.size) {
  const bool across = group.across_nodes();
  latency_ = across ? cluster.network.latency_seconds : cluster.node.latency_seconds;
  rate_ = cluster.node.bytes_per_second;
  link_rate_ = across ? cluster.network.bytes_per_second : rate_;
  if (!across) return;
  const double network = cluster.network.bytes_per_second * group.per_node;
  rate_ = group.per_node > 1 ? std::min(rate_, network) : network;
}

double GroupLinks::all_reduce_seconds(double bytes) const {
  if (size_ <= 1) return 0;
  const double ring = 2 * (size_ - 1) * (latency_ + bytes / size_ / rate_);
  const double tree = 2 * (std::ceil(std::log2(size_)) * latency_ + bytes / rate_);
  return std::min(ring, tree);
}

double GroupLinks::all_gather_seconds(double bytes) const {
  return size_ <= 1 ? 0 : (size_ - 1) * (latency_ + bytes / size_ / rate_);
}

double GroupLinks::all_to_all_seconds(double bytes) const {
  return size_ <= 1 ? 0 : (size_ - 1) * (latency_ + bytes / size_ / link_rate_);
}

double GroupLinks::send_seconds(double bytes) const { return latency_ + bytes / link_rate_; }

}  // namespace braid
