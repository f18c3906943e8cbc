// Replicas between steps: whether they are equal, how they are synchronized, and their part of a checkpoint.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "braid/optim/optimizer.h"
#include "braid/param/sharding.h"

namespace braid::sync {

// Alike: all replicas have the same parameters.
enum class Replicas { Alike, Apart };

// A tensor that a run needs to resume, besides parameters and optimizer states: the outer optimizer's momentum, or a
// compression residual.
struct ReplicationState {
  std::string name;
  mesh::Placement placement;
  at::Tensor local;  // contiguous, of shape placement.local_shape; written in place when a run resumes
};

// The operations of a replica between steps. Methods that communicate throw CommError.
class ReplicaLife {
 public:
  virtual ~ReplicaLife() = default;
  virtual Replicas replicas() const { return Replicas::Alike; }
  // Collective. Called before an evaluation or a checkpoint. Sends what this rank held back, and fetches the newest
  // parameters that others keep, so that all replicas have the same. Local SGD does not synchronize inside a period:
  // its replicas stay apart (replicas(); local_sgd.h).
  virtual void meet() {}

  // Returns the prefix ("replica.2/") that a checkpoint puts before the names of this rank's parameters and states if
  // they may differ from the first replica's. Empty on the first replica, and if all replicas stay equal. Returns the
  // same at every call.
  virtual std::string own_prefix() const { return ""; }
  // Returns the replication's own state, the same tensors at every call.
  virtual std::vector<ReplicationState> state() { return {}; }
  // If servers make the update, fetches the optimizer's states and number of steps into `optimizer`, where they stay
  // until saved().
  virtual void fetch_states(optim::Optimizer& optimizer) {}
  // Frees what fetch_states() has fetched. Called once it is written.
  virtual void saved(optim::Optimizer& optimizer) {}

  // Called after a checkpoint was loaded, in which the replicas were in the state `replicas`. It has weights but no
  // state() of the parameters `released`, which are trained from now on.
  virtual void resume(Replicas replicas, const std::vector<std::string>& released) {}
  // Called after masters and states were read from a checkpoint. Servers take them over from `optimizer`. Then does
  // what ParameterSync::updated() does.
  virtual void restored(optim::Optimizer& optimizer) = 0;
};

}  // namespace braid::sync
