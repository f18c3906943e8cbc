// Totals and minima over all kinds of devices.
#include "braid/plan/cluster.h"

#include <algorithm>

namespace braid::plan {

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

const DeviceGroup& Cluster::with_least_memory() const {
  return *std::ranges::min_element(devices, {}, &DeviceGroup::usable_bytes);
}

}  // namespace braid::plan
