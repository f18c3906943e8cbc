// Keeping replicas in step. All-reduce, ZeRO, local SGD, compression and parameter-server clients are implementations,
// so the trainer has one shape.
#pragma once

#include <cstdint>

#include "braid/param/param_store.h"

namespace braid {

enum class Phase { Forward, Backward };

// Whatever communicates throws CommError.
class Replication {
 public:
  virtual ~Replication() = default;
  // Before and after block `block` of this rank runs; implementations that shard parameters gather and free here.
  virtual void acquire(int block, Phase phase) = 0;
  virtual void release(int block, Phase phase) = 0;
  // The parameter's gradients are complete on this rank. Replicas may say so in different orders.
  virtual void ready(const Parameter& param) = 0;
  // Every parameter of the stage has been ready: whatever has not been launched is launched.
  virtual void flush() = 0;
  // Blocks until every parameter's main_grad is final: summed over the replicas, tied uses added.
  virtual void finish() = 0;
  // What this rank's collectives put on a wire since the object was made, counted as by the ring algorithm.
  virtual int64_t bytes_sent() const = 0;
};

}  // namespace braid
