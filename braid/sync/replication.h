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

#include <cstdint>
#include <functional>
#include <string>

#include "braid/optim/optimizer.h"
#include "braid/param/memory_account.h"
#include "braid/param/param_store.h"
#include "braid/sync/replica_life.h"

namespace braid::sync {

// The update's executor, and the parameters that blocks run with.

// The executor of the optimizer's step.
enum class UpdateBy { Rank, Servers };

// Times of a parameter server; zeros otherwise.
struct ReplicationTimes {
  double waiting_seconds = 0;  // for servers, since the object was made
  int64_t staleness = 0;       // updates between the parameters and their gradient, of the last push that is known
};

// The order of calls is replication.h's. Whatever communicates throws CommError.
class ParameterSync {
 public:
  virtual ~ParameterSync() = default;
  // Before and after block `block` of the store's runs; implementations that shard parameters gather and free here.
  virtual void acquire(int block, param::Phase phase) {}
  virtual void release(int block, param::Phase phase) {}
  // Servers: the gradients are on their way and the update is theirs. Rank: nothing has happened.
  virtual UpdateBy update(const optim::OptimizerStep& step) { return UpdateBy::Rank; }
  // The masters this rank owns were written, or are as they were. Blocks until blocks may run again.
  virtual void updated() {}
  virtual ReplicationTimes times() const { return {}; }
};

// Turns the gradients that a rank computes into those that its optimizer reads.

// The replicas whose microbatches contribute to a step's gradients.
enum class GradientsOf { AllReplicas, OwnReplica };

// The order of calls is replication.h's. Whatever communicates throws CommError.
class GradientSync {
 public:
  virtual ~GradientSync() = default;
  // `step` steps have been done.
  virtual void begin_step(int64_t step) {}
  // The parameter's gradients are complete on this rank. Replicas may say so in different orders.
  virtual void ready(const param::Parameter& param) {}
  // Every parameter of the stage has been ready: whatever has not been launched is launched.
  virtual void flush() {}
  // Blocks until the gradients that this rank's optimizer reads are final: summed over the replicas, tied uses added.
  virtual void finish() = 0;
  // Returns this for the current step.
  virtual GradientsOf gradients() const { return GradientsOf::AllReplicas; }
  // Returns the bytes that this rank's collectives have sent since construction, gradients and all else, as the ring
  // algorithm counts them.
  virtual int64_t bytes_sent() const = 0;
  // The part of it that left the node, where the mesh has nodes.
  virtual int64_t bytes_across_nodes() const { return 0; }

  // Told, on every rank, what was chosen from measurements and why. May be empty.
  std::function<void(const std::string& choice)> on_choice;
};

class Replication : public GradientSync, public ParameterSync, public ReplicaLife {
 public:
  void restored(optim::Optimizer&) override { updated(); }
};

}  // namespace braid::sync
