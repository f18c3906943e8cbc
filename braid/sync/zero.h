// Replicas that shard what plain data parallelism holds on every rank: optimizer states, gradients, parameters
// (ZeRO, stages 1 to 3: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
// SC 2020, sections 5 and 7). How much is sharded, the store says. Hybrid: the ranks of `shards` share one copy, and
// those of `copies` hold the same part of other copies.
//
//   elements a rank sends per step, of P parameters on n ranks, m microbatches   (in units of P (n - 1) / n)
//   optimizer    reduce-scatter of gradients 1, all-gather of parameters 1                          2
//   gradients    reduce-scatter of each microbatch m, all-gather of parameters 1                    m + 1
//   parameters   all-gather for each forward m and each backward m, reduce-scatter m                3 m
//
// In reproducible mode gradients stay whole until the last microbatch, and are scattered once.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/param_store.h"
#include "braid/param/unit_sink.h"
#include "braid/sync/replication.h"

namespace braid::sync {

// Makes the parameters of a block whole while it runs, where they are sharded over ranks (ZeRO stage 3; Rajbhandari et
// al. 2020, section 5.3).
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

struct ShardGroups {
  Communicator& shards;  // share one copy; as many as the store has parts
  Communicator& copies;  // hold the same part; else size 1
  Communicator& tied;    // share tied parameters (first and last stage of one replica); else size 1
};

class Zero final : public Replication {
 public:
  // All arguments outlive this. `sink` is where gradients go that the store shards, else null. `stage_of_block`:
  // what is run one after another, by block of the store.
  Zero(param::ParamStore& store, param::UnitSink* sink, ShardGroups groups, std::vector<int> stage_of_block);

  void acquire(int block, param::Phase phase) override;
  void release(int block, param::Phase phase) override;
  void ready(const param::Parameter& param) override;
  void flush() override;
  void finish() override;
  void updated() override;
  int64_t bytes_sent() const override;

 private:
  // Unsharded gradients that one reduce-scatter takes: a unit's, or those of another use of a tied parameter.
  struct Piece {
    int unit;
    int64_t begin, end;  // elements of the flat gradients
    int num_missing;     // parameters that are not ready yet
    int num_params;
    Work work;
  };
  struct InFlight {
    int unit;
    at::Tensor gradient;
    Work work;
  };
  void plan_pieces();
  at::Tensor own_part(const at::Tensor& whole) const;
  Work scatter(const at::Tensor& whole);
  void take(int unit, const at::Tensor& gradient);
  void land();
  void finish_pieces();
  void add_copies();

  param::ParamStore& store_;
  param::UnitSink* sink_;
  ShardGroups groups_;
  std::vector<int> stage_of_block_;
  std::optional<UnitGatherer> gatherer_;                        // sharded parameters
  std::vector<Piece> pieces_;                                   // gradients whole: in the order of launching
  std::unordered_map<std::string, std::vector<int>> of_param_;  // its pieces
  size_t next_ = 0;                                             // the piece to launch next
  std::deque<InFlight> in_flight_;                              // sharded gradients
  std::vector<bool> written_;                                   // sharded gradients: by unit, this step's sum has begun
  int64_t bytes_sent_ = 0;
};

}  // namespace braid::sync
