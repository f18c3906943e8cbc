// What braid doctor has found, as a cluster file: TOML for whoever plans runs on such hosts.
#pragma once

#include <string>

#include "braid/train/measure_job.h"

namespace braid {

// The cluster file of hosts like these: a device for each rank, all of a host's sharing its cores; a kind of devices
// for each processor and number of ranks. What one host cannot tell (a network, failures) is left out.
std::string cluster_file_text(const MeasuredJob& job);

}  // namespace braid
