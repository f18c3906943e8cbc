// Gathers parameters that are sharded over ranks, or on disk, or both. A block's parameters are whole while the block
// runs (ZeRO stage 3; Rajbhandari et al. 2020, section 5.3; on disk: ZeRO-Infinity, Rajbhandari et al. 2021, section
// 5).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/comm/op_name.h"
#include "braid/param/param_store.h"
#include "braid/sync/unit_residency.h"

namespace braid::sync {

class UnitGatherer {
 public:
  // `store` and `shards` outlive this. REQUIRES: `store` shards parameters.
  UnitGatherer(param::ParamStore& store, Communicator& shards, const ParameterMemory& memory = {});
  ~UnitGatherer();

  // Collective: all ranks of the group call these methods in the same order. They throw CommError, and RunError if the
  // disk fails.
  std::optional<std::string> begin_step();  // returns the decision on units that stay in memory, once
  void prefetch(int block);                 // starts to gather the block, unless UnitResidency decides when
  void acquire(int block);                  // blocks until the block is whole
  void release(int block);                  // called once per acquire(); the last call frees a block that does not stay
  void drop_prefetched();                   // frees blocks that were prefetched but not acquired
  void end_step();                          // frees all blocks

  int64_t bytes_sent() const { return bytes_sent_; }

 private:
  // Reading: this rank's part comes from the disk. The ranks gather the whole when the block is acquired.
  enum class State { Free, Reading, Gathering, Whole };
  struct Unit {
    State state = State::Free;
    int num_users = 0;
    disk::Ticket reading = {};
    Work work = {};
    comm::OpName name = {};  // of the gather
  };
  void run(const moves::Moves& moves);
  void start_due();
  void start(int unit);
  void gather(int unit, const at::Tensor& own);
  void wait_for_disk(int unit);
  at::Tensor own_place(int unit) const;
  void free(int unit);

  param::ParamStore& store_;
  Communicator& shards_;
  UnitResidency residency_;
  std::vector<Unit> units_;
  std::deque<int> due_;  // units that may be read from disk now
  int64_t bytes_sent_ = 0;
  int64_t bytes_read_ = 0;  // from disk in this step
};

// Returns "gradients of blocks.0.ln_1.weight ..": the first parameter stands for its unit.
comm::OpName name_of_unit(std::string_view what, const param::ParamStore& store, size_t unit);

}  // namespace braid::sync
