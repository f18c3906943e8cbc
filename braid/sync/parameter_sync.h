// The update's executor, and the parameters that blocks run with.
#pragma once

#include <cstdint>

#include "braid/optim/optimizer.h"
#include "braid/param/phase.h"

namespace braid::sync {

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

}  // namespace braid::sync
