// Keeping replicas in step. All-reduce, ZeRO, local SGD, compression and parameter-server clients are implementations,
// so the trainer has one shape. Each overrides what it has to say of three concerns, and whoever needs one of them is
// handed that part. A step calls, on every rank and in this order:
//
//   begin_step                       step by step
//     acquire, release               around every block that runs, forward and backward
//     ready                          as soon as a parameter's gradients are complete on this rank
//     flush                          when the backward pass is over
//   finish                           gradients are final
//   update                           makes the update, where it is not this rank's optimizer that does
//   (the optimizer)                  else writes the masters that this rank owns
//   updated                          every rank's parameters are the new ones
#pragma once

#include "braid/sync/gradient_sync.h"
#include "braid/sync/parameter_sync.h"
#include "braid/sync/replica_life.h"

namespace braid::sync {

class Replication : public GradientSync, public ParameterSync, public ReplicaLife {
 public:
  void restored(optim::Optimizer&) override { updated(); }
};

}  // namespace braid::sync
