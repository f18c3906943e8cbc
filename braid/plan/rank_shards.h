// The time and memory that each pipeline stage takes, and each rank with all its stages.
#pragma once

#include <vector>

#include "braid/plan/data_exchange.h"
#include "braid/plan/pipeline_outcome.h"
#include "braid/plan/run_layout.h"
#include "braid/schedule/generators.h"

namespace braid::plan {

// Returns the cluster as the ranks of the run see it. Only clusters with shared cores (DeviceGroup::shared_cores)
// change; all kinds of a cluster share cores, or none. There a device becomes the cores that one rank computes with
// (spec/rank_hosts.h). It is as many times as fast, and its memory is one rank's part of the host's memory.
//
// R ranks on a host of N cores have up to N / R cores each, but no more than they have threads. If R is larger than N:
//
// * The ranks that compute at the same time get equal shares of the cores (schedule/simulate.h). A rank that idles in a
//   bubble leaves its core to others.
// * All replicas are assumed to be at the same action. On a cluster of one kind, replicas that have finished all their
//   microbatches leave their cores to others.
// * A pipeline on several kinds of hosts has as many ranks per core as its fullest host.
//
// Tensor ranks wait at every exchange for the slowest one, DeviceGroup::skew of their compute time. They do not if R is
// larger than N and there are several replicas, because ranks of other replicas compute on their cores meanwhile.
Cluster with_cores_of_ranks(Cluster cluster, const RunSpec& spec);

// Returns the number of ranks per core of a host; 0 if cores are not shared.
double ranks_per_core(const PlannedRun& run);

// Returns the number of cores that one replica's pipeline has, with `crowd` ranks per core.
double cores_of_replica(const PlannedRun& run, double crowd);

// The passes of one microbatch through a stage, the parameters of the stage, and the bytes that it holds for the
// schedule.
struct StageFacts {
  StagePasses passes;
  StageParameters parameters;
  HeldBytes held;
};

std::vector<StageFacts> stage_facts(const PlannedRun& run, const PartParameters& parts);

// Returns the share of each pipeline rank. `stages` are the stages of the run.
std::vector<RankShare> rank_shares(const PlannedRun& run, const ScheduleTraits& traits,
                                   const std::vector<StageFacts>& stages, const PartParameters& parts);

}  // namespace braid::plan
