// Makes the parameters of a block whole while it runs, where they are sharded over ranks (ZeRO stage 3; Rajbhandari et
// al. 2020, section 5.3).
#pragma once

#include <cstdint>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/param_store.h"

namespace braid::sync {

class UnitGatherer {
 public:
  // Both outlive this. `store` shards parameters.
  UnitGatherer(param::ParamStore& store, Communicator& shards);

  // Collective, all ranks of the group call them in the same order.
  void prefetch(int block);  // starts to gather what is not there; whoever does not acquire it later calls drop()
  void acquire(int block);   // blocks until it is there
  void release(int block);   // once for each acquire; the last frees it
  void drop();               // frees what nobody has acquired

  int64_t bytes_sent() const { return bytes_sent_; }

 private:
  enum class State { Free, Gathering, Whole };
  struct Unit {
    State state = State::Free;
    int num_users = 0;
    Work work;
  };
  void start(int unit);
  void free(int unit);

  param::ParamStore& store_;
  Communicator& shards_;
  std::vector<Unit> units_;
  int64_t bytes_sent_ = 0;
};

}  // namespace braid::sync
