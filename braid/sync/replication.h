// Keeps replicas in step. All-reduce, ZeRO, local SGD, compression and parameter-server clients are implementations, so
// the trainer has one shape. The interface has three parts: GradientSync, ParameterSync and ReplicaLife. An
// implementation overrides what it needs, and a caller that needs one part is passed only that part. A step calls, on
// every rank and in this order:
//
//   begin_step                       once per step
//     acquire, release               around every block that runs, forward and backward
//     ready                          as soon as a parameter's gradients are complete on this rank
//     flush                          when the backward pass is over
//   finish                           makes gradients final
//   update                           starts the update, if servers make it
//   (the optimizer)                  otherwise updates the masters that this rank owns
//   updated                          makes every rank's parameters the new ones
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/optim/optimizer.h"
#include "braid/param/memory_account.h"
#include "braid/param/param_store.h"
#include "braid/sync/replica_life.h"
#include "braid/sync/run_request.h"

namespace braid::sync {

// The groups of ranks that hold the same parameters as this rank, or other parts of them. REQUIRES: the groups outlive
// the Replication that is given them.
struct ReplicaGroups {
  Communicator& replicas;  // all ranks with the same stages: they differ along kSampleAxes, or are a mirrored pair
  Communicator& shards;    // the replicas that hold the shards of one copy; as many as the store has parts
  Communicator& copies;    // the replicas that hold the same shard
  Communicator& tied;      // the ranks that share tied parameters (first and last stage of one replica); size 1 if none
};

// The executor of the optimizer's step.
enum class UpdateBy { Rank, Servers };

// Numbers of parameter servers; zeros for other implementations.
struct ReplicationTimes {
  double waiting_seconds = 0;         // waiting for servers, since construction
  int64_t staleness = 0;              // updates between the parameters and their gradient, for the last answered push
  std::vector<int64_t> server_bytes;  // peak memory of each server that is a rank of its own
};

// The parameters that blocks run with, and their update. The file comment has the order of calls. Methods that
// communicate throw CommError.
class ParameterSync {
 public:
  virtual ~ParameterSync() = default;
  // Called before and after block `block` of the store runs. Implementations that shard parameters gather and free them
  // here.
  virtual void acquire(int block, param::Phase phase) {}
  virtual void release(int block, param::Phase phase) {}
  // Called after a pass that failed. Frees parameters that were gathered ahead of blocks that do not run now.
  virtual void drop_prefetched() {}
  // Starts the update if servers make it. Returns Servers if the gradients are on their way to servers, which make the
  // update. Returns Rank if nothing was done.
  virtual UpdateBy update(const optim::OptimizerStep& step) { return UpdateBy::Rank; }
  // Called after the masters that this rank owns were written, or left as they were. Blocks until blocks may run again.
  virtual void updated() {}
  virtual ReplicationTimes times() const { return {}; }
  // Returns the strongest request of servers' ranks that has arrived here since the last call.
  virtual RunRequest take_request() { return RunRequest::GoOn; }
};

// The replicas whose microbatches contribute to a step's gradients.
enum class GradientsOf { AllReplicas, OwnReplica };

// The reduction of gradients: turns those that a rank computes into those that its optimizer reads. The file comment
// has the order of calls. Methods that communicate throw CommError.
class GradientSync {
 public:
  virtual ~GradientSync() = default;
  // Begins a step. `step` is the number of steps done before.
  virtual void begin_step(int64_t step) {}
  // Reports that the parameter's gradients are complete on this rank. Replicas may report parameters in different
  // orders.
  virtual void ready(const param::Parameter& param) {}
  // Launches everything that has not been launched. REQUIRES: ready() was called for every parameter of the stage.
  virtual void flush() {}
  // Blocks until the gradients that this rank's optimizer reads are final: summed over the replicas, with tied uses
  // added.
  virtual void finish() = 0;
  // Returns the offset of the flat buffers from which on this rank's gradients are final before finish(), except those
  // of parameters with several uses. Replicas may get different answers.
  virtual int64_t final_from() const { return std::numeric_limits<int64_t>::max(); }
  // Returns which replicas contribute to the current step's gradients.
  virtual GradientsOf gradients() const { return GradientsOf::AllReplicas; }
  // Returns the bytes that this rank's collectives have sent since construction, gradients and all else, as the ring
  // algorithm counts them.
  virtual int64_t bytes_sent() const = 0;

  // Returns true while it measures steps for a choice; the same on all ranks of the run.
  virtual bool measures_steps() const { return false; }

  // Called on every rank with each choice made from measurements, and the reason. May be empty.
  std::function<void(const std::string& choice)> on_choice;
};

// The pushes of workers that may be lost.
class PushCounts {
 public:
  virtual ~PushCounts() = default;
  // Waits until servers have applied all pushes of this worker. Returns their number.
  virtual int64_t own() = 0;
  // Returns the number of pushes of a lost worker, by its rank among the replicas at the start, that all servers have
  // applied.
  virtual int64_t of_lost(int worker) = 0;
};

class Replication : public GradientSync, public ParameterSync, public ReplicaLife {
 public:
  // Returns the pushes; null if servers do not make the update.
  virtual PushCounts* push_counts() { return nullptr; }
  void restored(optim::Optimizer&) override { updated(); }
};

}  // namespace braid::sync
