// The bytes that a rank moves between its memory and its tiers in a step, and the time that this takes.
#pragma once

#include <vector>

#include "braid/plan/rank_share.h"
#include "braid/schedule/timeline.h"

namespace braid::plan {

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
// Returns the part of offload_seconds() that overlaps the backward of the last microbatch, if it takes as long.
double hidden_offload_seconds(const PlannedRun& run, const RankShare& share);

// Returns the states that the rank updates.
StateBytes updated_states(const PlannedRun& run, const RankShare& share);

// Returns the microbatches that each stage of a rank runs: under DualPipe, one direction's.
double microbatches_of_stage(const PlannedRun& run);

// The seconds that the passes of a microbatch wait for moves.
struct PassWaits {
  double forward = 0, backward = 0;

  double both() const { return forward + backward; }
};
// Returns the seconds that the passes of a microbatch wait, in the mean, for weights, gradients and activations. These
// are moved block by block while other blocks compute. Of the weights a fraction `kept_weights` is read once in a step,
// the others for each pass.
PassWaits pass_waits(const PlannedRun& run, const RankShare& share, double kept_weights);

// The passes of a step that move bytes, and what follows them.
enum class MovedWith {
  FirstForward,     // the first forward of each of the rank's stages
  Forward,          // each forward
  Backward,         // each full backward or input-gradient pass
  WeightPass,       // each full backward or weight-gradient pass
  LaterWeightPass,  // these, but not the first of a stage
  Norm,             // sums over ranks with the same gradients, and the gradient norm
  Update,
};

struct DiskMove {
  MovedWith when;
  schedule::DiskContent content;
  Moved bytes;  // of all such passes of a step together
};

// Returns the moves between a rank and its disks in a step: states, weights and gradients of all updates; weights for
// each pass of each microbatch, but those that stay (`kept_weights`, a fraction) once; gradients as they are added up
// and for their norm; activations.
std::vector<DiskMove> disk_moves(const PlannedRun& run, const RankShare& share, double kept_weights);
// Returns the bytes of these moves.
double disk_bytes(const PlannedRun& run, const RankShare& share, double kept_weights);

}  // namespace braid::plan
