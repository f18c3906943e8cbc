// The exposed communication of data-parallel ranks in a step, and the optimizer's step.
#pragma once

#include <vector>

#include "braid/plan/model_states.h"
#include "braid/plan/run_layout.h"
#include "braid/plan/stage_passes.h"

namespace braid::plan {

// The optimizer's states elsewhere than on the device that updates: memory.offload.

// Returns the time in which `state_bytes` of a rank's offloaded states reach its device and return after the update; 0
// without offloading. It does not overlap backward passes, since the norm is known only after them; the update overlaps
// it part by part (Rajbhandari et al., "ZeRO-Infinity", 2021, section 5.2.2). Host: both directions at once, over the
// device's own link. Disk: reads, then writes, by all ranks of a node on its one disk, as if each had equally many
// bytes, and no faster than the device's link if the cluster has its rate.
double offload_seconds(const PlannedRun& run, double state_bytes);

// One pipeline rank: its parameters and its passes over all its stages.
struct RankShare {
  StageParameters parameters;
  double blocks = 0;
  StageParameters block;  // of each of them
  StagePasses passes;
  size_t devices = 0;  // as of its stages (run_layout.h)

  bool operator==(const RankShare&) const = default;
};

// The most stages of a rank that sync.zero_gather "stage" keeps gathered at once (schedule/passes.h).
inline constexpr int kMostStagesGathered = 3;

// Returns the number of updates in a step: several in an asynchronous pipeline (schedule/generators/asynchronous.h).
int num_updates(const PlannedRun& run);

// An all-reduce of the gradients (zero 0), a scattered sum and a gather of the weights (1); a scattered sum for each
// microbatch (2); two gathers and a scattered sum for each (3) (ZeRO, section 7), or with sync.zero_gather "stage" one
// gather for all. Under the set Megatron nothing is hidden but what zero 3 gathers; under Braid sums hide behind the
// last microbatch's backward but for the last bucket, unless sync.overlap is off, and what is done for each microbatch
// behind its passes. Within a host whose cores ranks share nothing is hidden: exchanges are work of the same cores.
// Experts are exchanged over the ranks that hold copies of them, after the rest.
double data_seconds(const PlannedRun& run, const RankShare& share);

// Weights are written, gradients read three times (their norm, the update, the zeroing), states read and written; and
// the norm is summed over all ranks. Ranks that shard update their part. Where states are offloaded, they come and go
// meanwhile (data_exchange.h).
double optimizer_seconds(const PlannedRun& run, const RankShare& share);

// The gradient of a tied weight that the first and the last stage both have, on two ranks, is summed over the two when
// the step's last backward pass has ended, shard by shard under ZeRO; `last_rank` is the pipeline rank of the last
// stage.
double tied_seconds(const PlannedRun& run, int last_rank);

// Returns the bytes that a rank sends in a step: (n-1)/n of what is gathered or scattered over n ranks, twice that of
// what is all-reduced (Patarasuk & Yuan 2009). To parameter servers: its gradients, at every push.
double sync_bytes(const PlannedRun& run, const RankShare& share);
double tied_bytes(const PlannedRun& run, int last_rank);

}  // namespace braid::plan
