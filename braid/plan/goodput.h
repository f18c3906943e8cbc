// Goodput: the fraction of a run's time that is spent on steps that no failure undoes.
#pragma once

#include <cstdint>

#include "braid/plan/cluster.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// Seconds. Failures come at random, with the same rate at all times, while saving and restarting too.
struct FailureModel {
  double mean_between = 0;  // failures of anything in the run; 0: nothing fails
  double stall = 0;         // that steps wait for a save
  double restart = 0;       // from a failure to the first step after it
  double save = 0;          // from the beginning of a save until it is complete: the next one begins no sooner
};

// Returns the mean time between failures of `num_devices`, each with a mean time of `mtbf_per_device`.
double mean_between_failures(double mtbf_per_device, int64_t num_devices);

// With a save after every `interval` seconds of steps: interval over the time that an interval takes on average,
// M e^(R/M) (e^((interval + stall)/M) - 1) with M between failures and R of restarting. Exact for such failures. Daly,
// "A higher order estimate of the optimum checkpoint interval for restart dumps" (FGCS 2006). A run that saves nothing
// has no interval. Where saves cost nothing, an interval of 0 is the best, and gives e^(-R/M).
double goodput(const FailureModel& model, double interval);

// The interval of the best goodput, to first order: sqrt(2 stall M). Young, "A first order approximation to the optimum
// checkpoint interval" (CACM 1974).
double young_interval(const FailureModel& model);

// The same to higher order, for stall < 2 M: sqrt(2 stall M) (1 + sqrt(stall/2M)/3 + (stall/2M)/9) - stall, else M.
// Daly (2006). Infinite where nothing fails.
double daly_interval(const FailureModel& model);

// daly_interval(), or the duration of a save where that is longer.
double save_interval(const FailureModel& model);

// The share of time in which no more than `spares` of the nodes are being repaired, so that the run need not wait:
// nodes under repair are Poisson distributed, with as many on average as fail while one is repaired.
double share_without_waiting(double mtbf_per_node, int64_t num_nodes, int64_t spares, double repair_seconds);

// The time that a run loses to failures on a cluster, and the best interval between saves.

// Returns the bytes of a checkpoint of the whole model: master weights and optimizer states in float32 (float64 in a
// run of that type).
double checkpoint_bytes(const RunSpec& spec, const Cluster& cluster);

// Failures of any of the run's ranks, and the cost of a save: Disk::save_seconds, and all nodes write their part of the
// masters and of the optimizer's states, float32 (float64 in a run of that type), to their disks. Steps stall
// meanwhile; with checkpoint.async for Disk::save_seconds and a copy in memory. No stall where the cluster has no disk
// and saves are not asynchronous.
FailureModel failure_model(const RunSpec& spec, const Cluster& cluster);

}  // namespace braid::plan
