// The times of ring and tree algorithms.
#include "braid/plan/collectives.h"

#include <algorithm>
#include <cmath>

namespace braid::plan {

GroupLinks::GroupLinks(const Cluster& cluster, RankGroup group) : size_(group.size) {
  const bool across = group.across_nodes();
  latency_ = across ? cluster.network.latency_seconds : cluster.node.latency_seconds;
  rate_ = cluster.node.bytes_per_second;
  link_rate_ = across ? cluster.network.bytes_per_second : rate_;
  if (across) {
    const double network = cluster.network.bytes_per_second * group.per_node;
    rate_ = group.per_node > 1 ? std::min(rate_, network) : network;
  }
  if (group.size > 1 && !cluster.all_reduces.empty()) take_measured(cluster, group);
}

void GroupLinks::take_measured(const Cluster& cluster, RankGroup group) {
  const auto distance = [&](const AllReduceTime& row) {
    return std::abs(std::log2(1.0 * row.ranks / group.size)) + std::abs(std::log2(1.0 * row.per_node / group.per_node));
  };
  const AllReduceTime* nearest = nullptr;
  for (const AllReduceTime& row : cluster.all_reduces) {
    if (row.across_nodes() != group.across_nodes()) continue;
    if (!nearest || distance(row) < distance(*nearest)) nearest = &row;
  }
  if (!nearest) return;
  const GroupLinks links({.node = cluster.node, .network = cluster.network}, {nearest->ranks, nearest->per_node});
  for (const AllReduceTime& row : cluster.all_reduces) {
    if (row.ranks != nearest->ranks || row.per_node != nearest->per_node) continue;
    measured_.push_back({std::log(row.bytes), row.seconds / links.formula_seconds(row.bytes)});
  }
}

double GroupLinks::ratio(double bytes) const {
  if (measured_.empty()) return 1;
  const double log_bytes = std::log(std::max(bytes, 1.0));
  if (log_bytes <= measured_.front().log_bytes) return measured_.front().ratio;
  for (size_t i = 1; i < measured_.size(); ++i) {
    const Measured &low = measured_[i - 1], &high = measured_[i];
    if (log_bytes > high.log_bytes) continue;
    return low.ratio + (high.ratio - low.ratio) * (log_bytes - low.log_bytes) / (high.log_bytes - low.log_bytes);
  }
  return measured_.back().ratio;
}

double GroupLinks::all_reduce_seconds(double bytes) const {
  return size_ <= 1 ? 0 : ratio(bytes) * formula_seconds(bytes);
}

double GroupLinks::formula_seconds(double bytes) const {
  const double ring = 2 * (size_ - 1) * (latency_ + bytes / size_ / rate_);
  const double tree = 2 * (std::ceil(std::log2(size_)) * latency_ + bytes / rate_);
  return std::min(ring, tree);
}

double GroupLinks::all_gather_seconds(double bytes) const {
  return size_ <= 1 ? 0 : ratio(bytes) * (size_ - 1) * (latency_ + bytes / size_ / rate_);
}

double GroupLinks::all_to_all_seconds(double bytes) const {
  return size_ <= 1 ? 0 : (size_ - 1) * (latency_ + bytes / size_ / link_rate_);
}

double GroupLinks::send_seconds(double bytes) const { return latency_ + bytes / link_rate_; }

}  // namespace braid::plan
