// Totals of all kinds.
#include "braid/cluster/cluster.h"

#include <algorithm>

namespace braid {

int Cluster::num_nodes() const {
  int all = 0;
  for (const DeviceGroup& group : devices) all += group.nodes;
  return all;
}

int64_t Cluster::num_devices() const {
  int64_t all = 0;
  for (const DeviceGroup& group : devices) all += group.num_devices();
  return all;
}

int Cluster::least_per_node() const { return std::ranges::min(devices, {}, &DeviceGroup::per_node).per_node; }

double Cluster::least_memory_bytes() const {
  return std::ranges::min(devices, {}, &DeviceGroup::memory_bytes).memory_bytes;
}

}  // namespace braid
