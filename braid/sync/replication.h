// Keeping replicas in step. All-reduce, ZeRO, local SGD, compression and parameter-server clients are implementations,
// so the trainer has one shape. A step calls, on every rank and in this order:
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
#include <vector>

#include "braid/optim/optimizer.h"
#include "braid/param/param_store.h"
#include "braid/param/phase.h"

namespace braid {

// Whose microbatches the gradients are of that a step updates with.
enum class GradientsOf { AllReplicas, OwnReplica };

// Whether all replicas have the same parameters.
enum class Replicas { Alike, Apart };

// Something a run needs to go on, beside parameters and the optimizer's states: the outer optimizer's momentum, what
// compression owes.
struct ReplicationState {
  std::string name;
  Placement placement;
  at::Tensor local;  // placement.local_shape, contiguous; written in place when a run is resumed
};

// Who makes the optimizer's step.
enum class UpdateBy { Rank, Servers };

// Of a parameter server; zeros else.
struct ReplicationTimes {
  double waiting_seconds = 0;  // for servers, since the object was made
  int64_t staleness = 0;       // updates between the parameters and their gradient, of the last push that is known
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
  // Servers: the gradients are on their way and the update is theirs. Rank: nothing has happened.
  virtual UpdateBy update(const OptimizerStep& step) { return UpdateBy::Rank; }
  // The masters this rank owns were written, or are as they were. Blocks until blocks may run again.
  virtual void updated() {}
  // Of the step under way.
  virtual GradientsOf gradients() const { return GradientsOf::AllReplicas; }
  // Between steps.
  virtual Replicas replicas() const { return Replicas::Alike; }
  // A checkpoint has been loaded, in which they were so.
  virtual void resume(Replicas replicas) {}
  // "replica.2/": what a checkpoint puts before the names of this rank's parameters and states, which may differ from
  // those of the first replica. Empty on the first, and where all stay alike. The same at every call.
  virtual std::string own_prefix() const { return ""; }
  // What this rank's collectives put on a wire since the object was made, counted as by the ring algorithm.
  virtual int64_t bytes_sent() const = 0;
  // The part of it that left the node, where the mesh has nodes.
  virtual int64_t bytes_across_nodes() const { return 0; }
  virtual ReplicationTimes times() const { return {}; }
  // Before an evaluation or a checkpoint, collective: what this rank held back is sent, and parameters that others keep
  // become the newest, the same on all replicas. Replicas that average what they train apart stay apart inside a
  // period (replicas(); mean_of_replicas.h).
  virtual void meet() {}
  // Where the update is the servers': states and number of steps come to `optimizer`, until they are saved.
  virtual void fetch_states(Optimizer& optimizer) {}
  // What fetch_states() brought has been written, and may go.
  virtual void saved(Optimizer& optimizer) {}
  // Masters and states were read from a checkpoint: servers take them over, out of `optimizer`; then as updated().
  virtual void restored(Optimizer& optimizer) { updated(); }
  // The same tensors at every call.
  virtual std::vector<ReplicationState> state() { return {}; }

  // Told, on every rank, what was chosen from measurements and why. May be empty.
  std::function<void(const std::string& choice)> on_choice;
};

}  // namespace braid
