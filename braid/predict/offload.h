// The optimizer's states elsewhere than on the device that updates: memory.offload.
#pragma once

#include "braid/predict/run_layout.h"
#include "braid/predict/stage_passes.h"

namespace braid {

// What a rank waits for `state_bytes` of its states to come to its device and go back after the update; 0 where they
// stay. Nothing of it hides behind backward passes, since the norm is known only after them; the update itself hides
// behind it, part by part (Rajbhandari et al., "ZeRO-Infinity", 2021, section 5.2.2). Host: both ways at once, each
// over the device's own link. Disk: reading and then writing, by all ranks of a node on its one disk, as if each had as
// much, and no faster than the device's link where the cluster says how fast that is.
double offload_seconds(const PlannedRun& run, double state_bytes);

}  // namespace braid
