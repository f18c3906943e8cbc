// The measurements of braid doctor as a cluster, for planning runs on such hosts.
#pragma once

#include "braid/plan/cluster.h"
#include "braid/train/measure_job.h"

namespace braid::cli {

// Hosts like these: a device for each rank, all of a host's sharing its cores; a kind of devices for each processor and
// number of ranks, with the least that any of its hosts has. What one host cannot tell (a network, failures) is not
// there.
plan::Cluster measured_cluster(const train::MeasuredJob& job);

// Its file, and what measured it.
std::string measured_cluster_text(const train::MeasuredJob& job);

}  // namespace braid::cli
