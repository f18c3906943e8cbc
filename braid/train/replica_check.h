// Compares copies of the same parameters and optimizer states on different ranks: a bit flip in one replica's memory
// silently spreads into all others' gradients. The caller decides what happens to the run.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "braid/optim/optimizer.h"
#include "braid/sync/replica_life.h"
#include "braid/train/rank_model.h"

namespace braid::train {

enum class CopyOf { Weights, Masters, State };

// Something that this rank holds and another may hold too: those of equal `param`, `what` and `box` are copies.
struct HeldCopy {
  int64_t param = 0;  // place in the ParamOrder
  CopyOf what = CopyOf::Weights;
  uint64_t box = 0;  // digest of its name and Placement
  at::Tensor values;
};

// Weights, and of masters and states what this rank owns: as Placements and shards say, so whether copies lie along the
// data axis, on tensor ranks, in mirrored stages or at both ends of a tied embedding. Valid as long as the parts. Where
// replicas have states of their own (ReplicaLife::own_prefix) those have names of their own.
std::vector<HeldCopy> copies_held(RankModel& model, optim::Optimizer& optimizer, sync::ReplicaLife& replicas);

// Returns the first differing copies in model order: if most are equal, the ranks that differ; else all ranks that hold
// one. Empty if all copies are equal bit for bit. Reads each shared tensor once, and gathers three numbers for each of
// `held`. The same on all ranks. Collective over `world`.
std::string differing_copies(const std::vector<HeldCopy>& held, Communicator& world, const optim::ParamOrder& order);

}  // namespace braid::train
