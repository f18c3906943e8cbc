// Data and model parallelism beside each other, as text.
#pragma once

#include <string>

#include "braid/plan/cluster.h"
#include "braid/spec/run_spec.h"

namespace braid::cli {

// The table of the textbooks with the run's own numbers, on all devices of the cluster; bytes on twice as many beside
// them.
std::string compare_text(const RunSpec& run, const plan::Cluster& cluster);

}  // namespace braid::cli
