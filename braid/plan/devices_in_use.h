// The devices of a cluster that a run uses, and their rates.
#pragma once

#include "braid/plan/cluster.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

struct DevicesInUse {
  double count = 0;
  double peak = 0;  // flops a second of all
};
// The devices that have ranks, the first ones; cores that ranks share are all in use.
DevicesInUse devices_in_use(const RunSpec& spec, const Cluster& cluster);

// Returns the rate of matrix products on all devices together, in FLOP/s: no layout is faster.
double best_rate_of_all(const RunSpec& spec, const Cluster& cluster);

}  // namespace braid::plan
