// The time that a run loses to failures on a cluster, and the best interval between saves.
#pragma once

#include "braid/plan/cluster.h"
#include "braid/plan/goodput.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// Returns the bytes of a checkpoint of the whole model: master weights and optimizer states in float32 (float64 in a
// run of that type).
double checkpoint_bytes(const RunSpec& spec, const Cluster& cluster);

// Failures of any of the run's ranks, and the cost of a save: Disk::save_seconds, and all nodes write their part of the
// masters and of the optimizer's states, float32 (float64 in a run of that type), to their disks. Steps stall
// meanwhile; with checkpoint.async for Disk::save_seconds and a copy in memory. No stall where the cluster has no disk
// and saves are not asynchronous.
FailureModel failure_model(const RunSpec& spec, const Cluster& cluster);

}  // namespace braid::plan
