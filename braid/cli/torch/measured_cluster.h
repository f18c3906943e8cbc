// Converts the measurements of braid doctor to a cluster, for planning runs on such hosts.
#pragma once

#include "braid/plan/cluster.h"
#include "braid/train/measure_job.h"

namespace braid::cli {

// Returns a cluster with the measured rates of these hosts. Each rank is a device, and the devices of a host share its
// cores. There is a kind of devices for each processor and number of ranks per host; its rates are the lowest of its
// hosts. A network and failures, which a single host cannot measure, are missing.
plan::Cluster measured_cluster(const train::MeasuredJob& job);

// Returns the cluster's file, with a note about the program that measured it.
std::string measured_cluster_text(const train::MeasuredJob& job);

}  // namespace braid::cli
