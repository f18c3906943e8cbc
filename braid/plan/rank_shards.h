// The demands of each pipeline stage, and of each rank with all its stages.
#pragma once

#include <vector>

#include "braid/plan/data_exchange.h"
#include "braid/plan/pipeline_outcome.h"
#include "braid/plan/run_layout.h"
#include "braid/schedule/generators.h"

namespace braid::plan {

// The cores of ranks on hosts whose cores are shared (DeviceGroup::shared_cores; a device is a core). Either all kinds
// of a cluster share cores or none.
//
// R ranks on a host of N cores have up to N / R cores each, as many as they have threads. Where R is more than N, those
// that compute at a time share the cores alike (schedule/simulate.h): who idles in a bubble leaves its core to the
// others, replicas being at the same action; on a cluster of one kind those that have done all their microbatches leave
// theirs too. A pipeline on several kinds of hosts is as crowded as the fullest.
//
// Tensor ranks wait at every exchange for the slower one, DeviceGroup::skew of what they compute, unless the ranks of
// another replica compute on their cores meanwhile.

// The cluster as the ranks of the run see it: where they share cores, a device has those that a rank computes with
// (spec/rank_hosts.h), and is so many times as fast.
Cluster with_cores_of_ranks(Cluster cluster, const RunSpec& spec);

// Returns the number of ranks per core of a host; 0 where cores are not shared.
double ranks_per_core(const PlannedRun& run);

// Returns the number of cores of a replica's pipeline with `crowd` ranks per core.
double cores_of_replica(const PlannedRun& run, double crowd);

// Passes of a microbatch, parameters, and what a schedule holds of activations.
struct StageFacts {
  StagePasses passes;
  StageParameters parameters;
  HeldBytes held;
};

std::vector<StageFacts> stage_facts(const PlannedRun& run, const PartParameters& parts);

// Returns the demands of each pipeline rank; `stages` are the run's.
std::vector<RankShare> rank_shares(const PlannedRun& run, const ScheduleTraits& traits,
                                   const std::vector<StageFacts>& stages, const PartParameters& parts);

}  // namespace braid::plan
