// Creates the Replication that [sync] selects. This is the one place that knows all of them.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/unit_sink.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/bucketed_all_reduce.h"
#include "braid/sync/unit_residency.h"

namespace braid::sync {

struct ReplicationParts {
  param::ParamStore& store;
  param::UnitSink* unit_sink = nullptr;   // sink of gradients that the store shards; else null
  std::vector<int> stage_of_block = {};   // by block of the store: its stage, whose blocks run in sequence
  std::vector<char> runs_backward = {};   // by block of the store: 1 if backward runs it; empty: it runs all
  ParameterMemory parameter_memory = {};  // of parameters on disk
  int ranks_per_replica = 1;              // neighbours in groups.replicas; 2 if stages are mirrored
  int model_part = 0;                     // distinguishes ranks that hold different parts of a parameter
  uint64_t seed = 0;
  std::vector<SumGroup> sum_groups = {};  // of parameters split along one of kSampleAxes; reducers are null
  OptimizerSpec optimizer = {};           // optimizer of parameter servers
  Communicator* with_servers = nullptr;   // ServedReplica::Specs::with_servers
  int64_t num_steps = std::numeric_limits<int64_t>::max();  // steps of the run; the last one leaves all replicas equal
};

// Collective over groups.replicas. The groups, the store and the sink outlive the result. All-reduce, compressed or
// not, sums gradients of parameters that are split along one of kSampleAxes over groups of their own. Sharding, local
// SGD and parameter servers have one group for all parameters. With these, check() fails if the store has parameters
// that need several groups.
std::unique_ptr<Replication> make_replication(const SyncSpec& spec, const ReplicaGroups& groups,
                                              ReplicationParts parts);

}  // namespace braid::sync
