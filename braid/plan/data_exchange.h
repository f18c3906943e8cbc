// Times of a step's data-parallel communication that computation does not hide, and of the optimizer's step.
#pragma once

#include "braid/plan/rank_share.h"

namespace braid::plan {

// The most stages of a rank whose weights sync.zero_gather "stage" keeps gathered at once (schedule/passes.h).
inline constexpr int kMostStagesGathered = 3;

// Returns the number of updates in a step. Asynchronous pipelines have several (schedule/generators/asynchronous.h).
int num_updates(const PlannedRun& run);

// Returns the seconds of an update's gradient and weight exchanges that computation does not hide, with the
// pass_waits() (step_moves.h) of its microbatches. The exchanges of a step with one update are (Rajbhandari et al.,
// "ZeRO", 2020, section 7):
//
//   ZeRO 0   an all-reduce of the gradients
//   ZeRO 1   a reduce-scatter of the gradients, an all-gather of the weights
//   ZeRO 2   a reduce-scatter for each microbatch, one all-gather
//   ZeRO 3   two all-gathers and a reduce-scatter for each microbatch; with sync.zero_gather "stage" one all-gather
//            a step, if a rank has at most kMostStagesGathered stages
//   FSDP2    (torchtitan with ZeRO 1, 2 or 3) for each microbatch a reduce-scatter and an all-gather, or two under
//            ZeRO 3; with pipeline ranks one of each in the step
//
// If there are several sharding groups (sync.zero_group), an all-reduce between them follows. Local SGD and DiLoCo
// exchange once in sync.period steps; the result is the mean of a step.
//
// Under ZeRO 3 the exchanges of each microbatch overlap its passes. Otherwise overlap depends on the formula set
// (formula_set.h):
//
//   Megatron     nothing overlaps
//   Braid        the reduction of gradients overlaps the backward passes of the last microbatch, or under ZeRO 2 of
//                each microbatch; nothing overlaps if sync.overlap is off
//   Torchtitan   all exchanges overlap
//
// The last bucket is never hidden: one block's part of the exchange. On a single CPU host (DeviceGroup::shared_cores)
// nothing overlaps, because exchanges occupy the cores that compute. Experts are exchanged after all other parameters,
// over the ranks that hold copies of them.
//
// `kept_weights` is the fraction of offloaded weights that stays between its uses in a step. The rest is read for each.
double data_seconds(const PlannedRun& run, const RankShare& share, double kept_weights = 0);

// Returns the seconds of the optimizer's step. It writes weights, accesses gradients three times (norm, update,
// zeroing), and reads and writes optimizer states. With ZeRO a rank updates only its shard. The gradient norm is
// all-reduced over all ranks. offload_seconds() overlaps the update.
double optimizer_seconds(const PlannedRun& run, const RankShare& share);

// Returns the seconds of the all-reduce of a tied weight's gradient between the ranks of the first and the last stage.
// It follows the step's last backward pass, and under ZeRO covers only the rank's shard. `last_rank` is the pipeline
// rank of the last stage; if that is 0, one rank has both stages and nothing is sent.
double tied_seconds(const PlannedRun& run, int last_rank);

// Returns the bytes that a rank sends for an update: (n-1)/n of all data that is gathered or scattered over n ranks,
// and twice that of all data that is all-reduced (Patarasuk & Yuan 2009). With parameter servers it sends its gradients
// to them once every sync.push_every steps.
double sync_bytes(const PlannedRun& run, const RankShare& share);
double tied_bytes(const PlannedRun& run, int last_rank);

}  // namespace braid::plan
