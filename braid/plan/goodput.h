// Goodput: the fraction of a run's time that is spent on steps that no failure undoes.
#pragma once

#include <cstdint>

#include "braid/plan/cluster.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// The failures of a run and the costs of saves, in seconds. Failures are a Poisson process: they come at random, at the
// same rate at all times, also during saves and restarts.
struct FailureModel {
  double mean_between = 0;  // mean time between failures of anything in the run; 0: nothing fails
  double stall = 0;         // time that training waits for a save
  double restart = 0;       // time from a failure to the first step after it
  double save = 0;          // time from the beginning of a save to its end; the next save begins no sooner
};

// Returns the mean time between failures of `num_devices` devices together, given that of one device.
double mean_between_failures(double mtbf_per_device, int64_t num_devices);

// Returns the goodput of a run that saves after every `interval` seconds of steps. It is `interval` divided by the mean
// time that an interval takes, M e^(R/M) (e^((interval + stall)/M) - 1), with mean time M between failures and restart
// time R. This is exact for FailureModel (Daly, "A higher order estimate of the optimum checkpoint interval for restart
// dumps", FGCS 2006). If saves cost nothing, an interval of 0 is the best and gives e^(-R/M). An infinite interval, a
// run without saves, gives 0, or 1 if nothing fails.
double goodput(const FailureModel& model, double interval);

// Returns the interval with the best goodput, to first order: sqrt(2 stall M). Young, "A first order approximation to
// the optimum checkpoint interval" (CACM 1974).
double young_interval(const FailureModel& model);

// Returns the interval with the best goodput, to higher order: sqrt(2 stall M) (1 + sqrt(stall/2M)/3 + (stall/2M)/9) -
// stall for stall < 2 M, else M. Daly (2006). Returns infinity if nothing fails.
double daly_interval(const FailureModel& model);

// Returns daly_interval(), or the duration of a save if that is longer.
double save_interval(const FailureModel& model);

// Returns the fraction of time in which at most `spares` of the nodes are under repair, so that the run need not wait.
// The number of nodes under repair is Poisson distributed. Its mean is the number of nodes that fail during one repair.
double share_without_waiting(double mtbf_per_node, int64_t num_nodes, int64_t spares, double repair_seconds);

// Returns the bytes of a checkpoint of the whole model: master weights and optimizer states in float32 (float64 in a
// run of that type).
double checkpoint_bytes(const RunSpec& spec, const Cluster& cluster);

// Returns the failures of all ranks of a run and the cost of its saves. A save takes Disk::save_seconds, and then all
// nodes write their part of the checkpoint_bytes() to their disks. Training waits for the whole save, or with
// checkpoint.async for Disk::save_seconds and a copy in memory. If the cluster describes no disk, saves that are not
// asynchronous take no time.
FailureModel failure_model(const RunSpec& spec, const Cluster& cluster);

}  // namespace braid::plan
