#include "braid/plan/offload.h"

#include <algorithm>

namespace braid::plan {

double offload_seconds(const PlannedRun& run, double state_bytes) {
  const auto& [spec, cluster, formulas, layout, rates] = run;
  const double of_link = cluster.host.bytes_per_second > 0 ? state_bytes / cluster.host.bytes_per_second : 0;
  switch (spec.memory.offload) {
    case OffloadTo::None:
      return 0;
    case OffloadTo::Host:
      return of_link;
    case OffloadTo::Disk: {
      const double of_node = layout.most_of_node * state_bytes;
      return std::max(of_node / cluster.disk.read_bytes_per_second, of_link) +
             std::max(of_node / cluster.disk.write_bytes_per_second, of_link);
    }
  }
  return 0;
}

}  // namespace braid::plan
