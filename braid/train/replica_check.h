// Compares copies of the same parameters and optimizer states on different ranks, since a bit flip in one replica's
// memory silently spreads to the gradients of all others. The caller decides what happens to the run.
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

// A tensor on this rank, of which other ranks may hold a copy. Two are copies if `param`, `what` and `box` are equal.
struct HeldCopy {
  int64_t param = 0;  // place in the ParamOrder
  CopyOf what = CopyOf::Weights;
  uint64_t box = 0;  // digest of the name of the tensor and of the box
  at::Tensor values;
};

// Returns the pieces of this rank's weights, unless they are sharded, and the masters and optimizer states that it
// owns. Their boxes identify copies anywhere: along the data axis, on tensor ranks, in mirrored stages, or at both ends
// of a tied embedding. If replicas have their own states (ReplicaLife::own_prefix), these have different names and are
// not copies. The tensors are views, valid as long as the arguments.
std::vector<HeldCopy> copies_held(RankModel& model, optim::Optimizer& optimizer, sync::ReplicaLife& replicas);

// Returns a description of the first differing copies in model order. If a majority is equal, it names the ranks that
// differ; else all ranks that hold a copy. Empty if all copies are equal bit for bit. Reads each tensor that has copies
// once, and gathers three numbers for each of `held`. Returns the same on all ranks. Collective over `world`.
std::string differing_copies(const std::vector<HeldCopy>& held, Communicator& world, const optim::ParamOrder& order);

}  // namespace braid::train
