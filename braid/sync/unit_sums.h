// Sums gradients that come unit by unit over the ranks that shard them, and over microbatches: in memory or, where the
// store has them there, on disk. A sum is written there while the next unit is computed.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "braid/comm/op_name.h"
#include "braid/param/unit_sink.h"
#include "braid/param/write_behind.h"
#include "braid/sync/replication.h"

namespace braid::sync {

class UnitSums {
 public:
  // REQUIRES: the arguments and the members of `groups` outlive this; `sink` is that of `store`. Methods throw
  // CommError, and RunError if the disk fails. Collective: all ranks of the group call them in the same order.
  UnitSums(param::ParamStore& store, param::UnitSink& sink, ReplicaGroups groups);

  // Called when the gradients of `param` are complete on this rank. Ends the sums of units before its own.
  void ready(const param::Parameter& param);
  // Ends all sums of the step, over copies too.
  void finish();
  // As GradientSync::final_from(). REQUIRES: there are no copies.
  int64_t final_from() const;

  int64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct InFlight {
    int unit, place;  // place: as in UnitSink::on_unit
    at::Tensor gradient;
    Work work;
  };
  void take(int unit, int place, const at::Tensor& gradient);
  void land();
  void add_copies();
  at::Tensor own_part(const at::Tensor& whole) const;

  param::ParamStore& store_;
  param::UnitSink& sink_;
  ReplicaGroups groups_;
  std::optional<param::WriteBehind> writes_;  // none: gradients are in memory
  size_t most_in_flight_;
  std::deque<InFlight> in_flight_;
  std::set<std::pair<int, int>> begun_;  // the sums of this step that have a first microbatch, by unit and place
  std::vector<comm::OpName> names_;      // by unit: of the sums
  std::vector<int> num_missing_;         // by unit: parameters that are not ready yet
  int64_t bytes_sent_ = 0;
};

}  // namespace braid::sync
