// Replicas that shard what plain data parallelism holds on every rank: optimizer states, gradients, parameters
// (ZeRO, stages 1 to 3: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
// SC 2020, sections 5 and 7). The store determines what is sharded. In hybrid sharding, the ranks of `shards` hold the
// shards of one copy, and the ranks of `copies` hold the same shard of different copies.
//
//   elements a rank sends per step, of P parameters on n ranks, m microbatches   (in units of P (n - 1) / n)
//   optimizer    reduce-scatter of gradients 1, all-gather of parameters 1                          2
//   gradients    reduce-scatter of each microbatch m, all-gather of parameters 1                    m + 1
//   parameters   all-gather for each forward m and each backward m, reduce-scatter m                3 m
//
// In reproducible mode gradients stay whole until the last microbatch, and are reduce-scattered once.
//
// Parameters and gradients on disk are sharded too, if only in one part: then this is the replication of plain data
// parallelism, whose groups of shards are of one rank each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/comm/op_name.h"
#include "braid/param/param_store.h"
#include "braid/param/unit_sink.h"
#include "braid/sync/replication.h"
#include "braid/sync/unit_gatherer.h"
#include "braid/sync/unit_sums.h"

namespace braid::sync {

// The order in which the blocks of a store run.
struct BlockOrder {
  std::vector<int> stage_of_block;       // the blocks of a stage run in sequence
  std::vector<char> runs_backward = {};  // by block: 1 if backward runs it; empty: it runs all

  // Returns the block that runs next to `block` in a pass of its stage; -1 if there is none.
  int next(int block, param::Phase phase) const;
};

struct ZeroOptions {
  BlockOrder order;             // of the blocks of the store
  ParameterMemory memory = {};  // of parameters on disk
};

class Zero final : public Replication {
 public:
  // `store`, `sink` and the members of `groups` outlive this. `sink` receives the gradients that the store shards; null
  // if it shards none.
  Zero(param::ParamStore& store, param::UnitSink* sink, ReplicaGroups groups, ZeroOptions options);

  void begin_step(int64_t step) override;
  void acquire(int block, param::Phase phase) override;
  void release(int block, param::Phase phase) override;
  void drop_prefetched() override;
  void ready(const param::Parameter& param) override;
  void flush() override;
  void finish() override;
  int64_t final_from() const override;
  void updated() override;
  int64_t bytes_sent() const override;

 private:
  // Unsharded gradients for one reduce-scatter: those of a unit, or those of a further use of a tied parameter.
  struct Piece {
    int unit;
    int64_t begin, end;  // elements of the flat gradients
    int num_missing;     // parameters that are not ready yet
    int num_params;
    Work work;
    comm::OpName name;  // of the sum
  };
  void plan_pieces();
  at::Tensor own_part(const at::Tensor& whole) const;
  void finish_pieces();
  void add_copies();

  param::ParamStore& store_;
  ReplicaGroups groups_;
  BlockOrder order_;
  std::optional<UnitGatherer> gatherer_;                        // set if parameters are sharded
  std::vector<Piece> pieces_;                                   // used if gradients are whole; in launch order
  std::unordered_map<std::string, std::vector<int>> of_param_;  // by parameter: its pieces
  size_t next_ = 0;                                             // the piece to launch next
  std::optional<UnitSums> sums_;                                // set if gradients are sharded
  int64_t bytes_sent_ = 0;
};

}  // namespace braid::sync
