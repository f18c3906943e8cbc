// Sums over kinds of devices.
#include "braid/plan/devices_in_use.h"

#include <algorithm>

#include "braid/plan/device_rates.h"

namespace braid::plan {

DevicesInUse devices_in_use(const RunSpec& spec, const Cluster& cluster) {
  int64_t left = num_ranks(spec.mesh);
  DevicesInUse used;
  for (const DeviceGroup& group : cluster.devices) {
    const int64_t taken = group.shared_cores ? group.num_devices() : std::min(left, group.num_devices());
    used.count += static_cast<double>(taken);
    used.peak += static_cast<double>(taken) * DeviceRates(group, spec.train.dtype).peak();
    left = std::max<int64_t>(left - taken, 0);
  }
  return used;
}

double best_rate_of_all(const RunSpec& spec, const Cluster& cluster) {
  double rate = 0;
  for (const DeviceGroup& group : cluster.devices) {
    rate += static_cast<double>(group.num_devices()) * DeviceRates(group, spec.train.dtype).best_rate();
  }
  return rate;
}

}  // namespace braid::plan
