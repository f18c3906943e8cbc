// The optimizer's states elsewhere than on the device that updates: memory.offload.
#pragma once

#include "braid/plan/run_layout.h"
#include "braid/plan/stage_passes.h"

namespace braid::plan {

// Returns the time in which `state_bytes` of a rank's offloaded states reach its device and return after the update; 0
// without offloading. It does not overlap backward passes, since the norm is known only after them; the update overlaps
// it part by part (Rajbhandari et al., "ZeRO-Infinity", 2021, section 5.2.2). Host: both directions at once, over the
// device's own link. Disk: reads, then writes, by all ranks of a node on its one disk, as if each had equally many
// bytes, and no faster than the device's link if the cluster has its rate.
double offload_seconds(const PlannedRun& run, double state_bytes);

}  // namespace braid::plan
