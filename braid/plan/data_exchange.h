// Times of a step's data-parallel communication that computation does not hide, and of the optimizer's step.
#pragma once

#include <vector>

#include "braid/plan/model_states.h"
#include "braid/plan/run_layout.h"
#include "braid/plan/stage_passes.h"

namespace braid::plan {

// Bytes that a rank reads from a tier and writes to it.
struct Moved {
  double read = 0, written = 0;

  bool operator==(const Moved&) const = default;
};

// Returns the seconds of moves between a device and a tier.
double move_seconds(const PlannedRun& run, Tier tier, const Moved& bytes);
// Returns the seconds of a rank's computation that moves of activations take, however fast the tier is: a disk's bytes
// are copied and read for their checksum before they are written, and read for it when they are back. `devices`: kind
// of the rank's devices.
double copy_seconds(const PlannedRun& run, size_t devices, const Moved& bytes);

// Returns the seconds that the transfers of an update take: optimizer states to the device and back, offloaded
// gradients to it, offloaded weights back; `held` are those that the rank updates. 0 without offloading. The transfer
// overlaps the update part by part (Rajbhandari et al., "ZeRO-Infinity", 2021, section 5.2.2).
//
//   host   both directions at once, over the device's own link
//   disk   reads, then writes; all ranks of a node share its one disk, and each is assumed to have equally many bytes.
//          The device's link limits both too, if the cluster has its rate.
double offload_seconds(const PlannedRun& run, const StateBytes& held);

// The part of the model that one pipeline rank has: the sums over all its stages.
struct RankShare {
  StageParameters parameters;
  double blocks = 0;       // number of blocks
  bool embedding = false;  // true if it has the embedding
  bool head = false;
  StageParameters block;   // parameters of one block
  ParameterSum ends;       // those outside of blocks
  ParameterSum both_uses;  // the tied table if the rank has both of its uses, else nothing
  StagePasses passes;      // of one microbatch, on average
  Moved activations;       // of a microbatch, to their tier and back
  size_t devices = 0;      // kind of the rank's devices: index into Cluster::devices

  bool operator==(const RankShare&) const = default;
};

// Returns the bytes that the rank reads from its disk and writes to it in a step: states, weights and gradients of the
// update; weights for each pass of each microbatch, but those that stay (`kept_weights`, a fraction) once; gradients as
// they are added up and for their norm; activations.
double disk_bytes(const PlannedRun& run, const RankShare& share, double kept_weights);

// The most stages of a rank whose weights sync.zero_gather "stage" keeps gathered at once (schedule/passes.h).
inline constexpr int kMostStagesGathered = 3;

// Returns the number of updates in a step. Asynchronous pipelines have several (schedule/generators/asynchronous.h).
int num_updates(const PlannedRun& run);

// Returns the seconds of an update's gradient and weight exchanges that computation does not hide, moves of offloaded
// weights and gradients among them. The exchanges of a step with one update are (Rajbhandari et al., "ZeRO", 2020,
// section 7):
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
