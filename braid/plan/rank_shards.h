// The time and memory that each pipeline stage takes, and each rank with all its stages. Also the model of CPU hosts,
// whose ranks share cores.
#pragma once

#include <vector>

#include "braid/plan/data_exchange.h"
#include "braid/plan/pipeline_outcome.h"
#include "braid/plan/run_layout.h"
#include "braid/schedule/generators.h"

namespace braid::plan {

// Returns the cluster with one device for each rank. Only clusters of CPU hosts change, whose devices are cores
// (DeviceGroup::shared_cores). A device of the result is the group of cores on which one rank computes
// (spec/rank_hosts.h). It is as fast as these cores together, and its memory is one rank's part of the host's memory.
// REQUIRES: all kinds of a cluster share cores, or none.
//
// R ranks on a host of N cores have up to N / R cores each, but no more than they have threads. If R is larger than N,
// ranks share cores, and the prediction assumes:
//
// * Ranks that compute at the same time get equal fractions of the cores (schedule/simulate.h). A rank that idles in a
//   bubble leaves its core to others.
// * All replicas execute the same action of their schedules at the same time. On a cluster of one kind, replicas that
//   have finished all their microbatches leave their cores to others.
// * A pipeline on several kinds of hosts has as many ranks per core as its host with the fewest cores.
//
// Tensor ranks wait at their exchanges for the slowest one, for a fraction DeviceGroup::skew of their compute time.
// They do not if R is larger than N and there are several replicas: ranks of other replicas compute on their cores
// meanwhile.
Cluster with_cores_of_ranks(Cluster cluster, const RunSpec& spec);

// Returns the number of cores on which a rank computes, of the `per_node` cores of its node.
int cores_of_rank(const RunSpec& spec, const Cluster& cluster, int per_node);

// Returns the number of ranks per core of the host with the fewest cores; 0 if devices are not cores.
double ranks_per_core(const PlannedRun& run);

// Returns the number of cores that the pipeline of one replica gets if there are `crowd` ranks per core.
double cores_of_replica(const PlannedRun& run, double crowd);

// The times of a stage for one microbatch, its parameters, and the memory of its activations.
struct StageFacts {
  StagePasses passes;
  StageParameters parameters;
  HeldBytes held;
  Moved activations;  // of a microbatch, to their tier and back
};

std::vector<StageFacts> stage_facts(const PlannedRun& run, const PartParameters& parts);

// Returns the part of the model that each pipeline rank has (data_exchange.h). `stages` are the stage_facts() of the
// run.
std::vector<RankShare> rank_shares(const PlannedRun& run, const ScheduleTraits& traits,
                                   const std::vector<StageFacts>& stages, const PartParameters& parts);

}  // namespace braid::plan
