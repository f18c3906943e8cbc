// The way of keeping replicas in step that [sync] asks for: the one place that knows all of them.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/unit_sink.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/bucketed_all_reduce.h"

namespace braid::sync {

struct SyncGroups {
  Communicator& replicas;  // all ranks with the same stages: they differ along kSampleAxes, or are a mirrored pair
  Communicator& shards;    // of these, those that hold the shards of one copy; as many as the store has parts
  Communicator& copies;    // and those that hold the same part of it
  Communicator& tied;      // the ranks that share tied parameters; else size 1
};

struct ReplicationParts {
  param::ParamStore& store;
  param::UnitSink* unit_sink = nullptr;  // where gradients go that the store shards
  std::vector<int> stage_of_block = {};  // of the store's blocks: what runs one after another
  std::optional<int> node = {};          // on which this rank is; none: all ranks are on one
  int ranks_per_replica = 1;             // neighbours among groups.replicas: 2 where stages are mirrored
  int model_part = 0;                    // tells ranks apart that hold other parts of the same parameters
  uint64_t seed = 0;
  std::vector<SumGroup> sum_groups = {};  // for parameters that are split along one of kSampleAxes; without reducers
  OptimizerSpec optimizer = {};           // of parameter servers
  int64_t num_steps = std::numeric_limits<int64_t>::max();  // of the run; the last one leaves all replicas alike
};

// The groups, the store and the sink outlive the result. Collective over groups.replicas. Parameters that are split
// along one of kSampleAxes are summed by all-reduce, compressed or not, over groups of their own; sharding, local SGD
// and parameter servers have one group for all parameters, and check() fails where the store has several.
std::unique_ptr<Replication> make_replication(const SyncSpec& spec, const SyncGroups& groups, ReplicationParts parts);

}  // namespace braid::sync
