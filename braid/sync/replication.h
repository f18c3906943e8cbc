// Keeping replicas in step. All-reduce, ZeRO, local SGD, compression and parameter-server clients are implementations, so
// the trainer has one shape.
#pragma once

#include <cstdint>
#include <functional>

#include "braid/param/param_store.h"

namespace braid {

enum class Phase { Forward, Backward };

struct SyncTraffic {
  int64_t bytes_sent = 0;  // what this rank would put on a wire for its collectives, ring algorithm
};

class Replication {
 public:
  virtual ~Replication() = default;
  // Before and after block `block` of this rank runs; implementations that shard parameters gather and free here.
  virtual void acquire(int block, Phase phase) = 0;
  virtual void release(int block, Phase phase) = 0;
  // The parameter's gradient is complete on this rank.
  virtual void ready(const Parameter& param) = 0;
  // Every parameter's main_grad is final on return: summed over the replicas, tied uses added.
  virtual void finish() = 0;
  // Traffic since the object was made.
  virtual SyncTraffic traffic() const = 0;
};

}  // namespace braid
