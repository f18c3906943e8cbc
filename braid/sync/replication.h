// Keeping replicas in step. All-reduce, ZeRO, local SGD, compression and parameter-server clients are implementations,
// so the trainer has one shape. A step calls, on every rank and in this order:
//
//   begin_step                       step by step
//     acquire, release               around every block that runs, forward and backward
//     ready                          as soon as a parameter's gradients are complete on this rank
//     flush                          when the backward pass is over
//   finish                           gradients are final
//   (the optimizer)                  writes the masters that this rank owns
//   updated                          every rank's parameters are the new ones
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/param/param_store.h"
#include "braid/param/phase.h"

namespace braid {

// Whose microbatches the gradients are of that a step updates with.
enum class GradientsOf { AllReplicas, OwnReplica };

// Whether all replicas have the same parameters.
enum class Replicas { Alike, Apart };

// Something a run needs to go on, beside parameters and moments: the outer optimizer's momentum, what compression owes.
struct ReplicationState {
  std::string name;
  Placement placement;
  at::Tensor local;  // placement.local_shape, contiguous; written in place when a run is resumed
};

// Whatever communicates throws CommError.
class Replication {
 public:
  virtual ~Replication() = default;
  // `step` steps have been done.
  virtual void begin_step(int64_t step) {}
  // Before and after block `block` of the store's runs; implementations that shard parameters gather and free here.
  virtual void acquire(int block, Phase phase) {}
  virtual void release(int block, Phase phase) {}
  // The parameter's gradients are complete on this rank. Replicas may say so in different orders.
  virtual void ready(const Parameter& param) = 0;
  // Every parameter of the stage has been ready: whatever has not been launched is launched.
  virtual void flush() = 0;
  // Blocks until the gradients that this rank's optimizer reads are final: summed over the replicas, tied uses added.
  virtual void finish() = 0;
  // The masters this rank owns were written, or are as they were. Blocks until blocks may run again.
  virtual void updated() {}
  // Of the step under way.
  virtual GradientsOf gradients() const { return GradientsOf::AllReplicas; }
  // Between steps.
  virtual Replicas replicas() const { return Replicas::Alike; }
  // A checkpoint has been loaded, in which they were so.
  virtual void resume(Replicas replicas) {}
  // "replica.2/": what a checkpoint puts before the names of this rank's parameters and moments, which may differ from
  // those of the first replica. Empty on the first, and where all stay alike. The same at every call.
  virtual std::string own_prefix() const { return ""; }
  // What this rank's collectives put on a wire since the object was made, counted as by the ring algorithm.
  virtual int64_t bytes_sent() const = 0;
  // The same tensors at every call.
  virtual std::vector<ReplicationState> state() { return {}; }
};

}  // namespace braid
