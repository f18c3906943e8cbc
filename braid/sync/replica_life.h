// Replicas between steps: whether they are equal, when they are synchronized, and their part of a checkpoint.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "braid/optim/optimizer.h"
#include "braid/param/param_spec.h"

namespace braid::sync {

// Alike: all replicas have the same parameters.
enum class Replicas { Alike, Apart };

// Something a run needs to go on, beside parameters and the optimizer's states: the outer optimizer's momentum, what
// compression owes.
struct ReplicationState {
  std::string name;
  mesh::Placement placement;
  at::Tensor local;  // placement.local_shape, contiguous; written in place when a run is resumed
};

// Methods that communicate throw CommError.
class ReplicaLife {
 public:
  virtual ~ReplicaLife() = default;
  virtual Replicas replicas() const { return Replicas::Alike; }
  // Before an evaluation or a checkpoint, collective: what this rank held back is sent, and parameters that others keep
  // become the newest, the same on all replicas. Replicas that average what they train apart stay apart inside a
  // period (replicas(); local_sgd.h).
  virtual void meet() {}

  // "replica.2/": what a checkpoint puts before the names of this rank's parameters and states, which may differ from
  // those of the first replica. Empty on the first, and where all stay alike. The same at every call.
  virtual std::string own_prefix() const { return ""; }
  // The same tensors at every call.
  virtual std::vector<ReplicationState> state() { return {}; }
  // Fetches states and number of steps into `optimizer` where servers make the update, until they are saved.
  virtual void fetch_states(optim::Optimizer& optimizer) {}
  // Frees what fetch_states() fetched, once it has been written.
  virtual void saved(optim::Optimizer& optimizer) {}

  // A checkpoint has been loaded, in which they were so.
  virtual void resume(Replicas replicas) {}
  // Masters and states were read from a checkpoint: servers take them over, out of `optimizer`; then as
  // ParameterSync::updated().
  virtual void restored(optim::Optimizer& optimizer) = 0;
};

}  // namespace braid::sync
