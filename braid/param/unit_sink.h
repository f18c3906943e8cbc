// A sink for sharded gradients and for those on disk. The gradients of a unit from one microbatch are written into a
// buffer of their own. The listener of `on_unit` takes the buffer when it is full, and adds up the microbatches. In
// reproducible mode the sink adds them up (tree_on_disk.h), and hands out the sums.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "braid/param/grad_ledger.h"
#include "braid/param/grad_sink.h"
#include "braid/param/tree_on_disk.h"
#include "braid/param/write_behind.h"

namespace braid::param {

class UnitSink final : public GradSink {
 public:
  // REQUIRES: `store` shards gradients and outlives this.
  explicit UnitSink(ParamStore& store);

  // Called from close() when all local uses of all of the unit's parameters have closed a microbatch; `place` is 0.
  // In reproducible mode it is called once a step for each use of a unit, the one at index `place` of its parameters'
  // local_uses. `gradient` is 1-D, as long as the unit, zero in its padding, and has memory on blocks if the store has
  // a disk (block_memory.h). The listener returns its memory by recycle().
  std::function<void(int unit, int place, const at::Tensor& gradient)> on_unit;
  void recycle(const at::Tensor& gradient);

  void begin_step(int num_microbatches) override;
  GradSlot open(const Parameter& param, int use, int micro) override;
  void close(const Parameter& param, int use, int micro) override;

 private:
  struct Filling {
    at::Tensor gradient;
    int num_left = 0;           // number of contributions that have not been closed
    std::vector<bool> started;  // by parameter of the unit: whether a contribution has been opened
  };
  using UnitUse = std::pair<int, int>;  // unit, place of the use among those that are summed apart
  int place_of(const Parameter& param, int use) const;
  Filling& filling(UnitUse of, int micro);
  at::Tensor buffer(int unit);
  void hand_out(UnitUse of, int micro, at::Tensor gradient);

  ParamStore& store_;
  GradLedger ledger_;
  std::optional<WriteBehind> writes_;                   // of the trees; none in fast mode
  std::map<UnitUse, TreeOnDisk> trees_;                 // empty in fast mode
  std::map<std::pair<UnitUse, int>, Filling> filling_;  // by microbatch
  std::map<int64_t, std::vector<at::Tensor>> free_;     // by length; empty if gradients are on disk
};

}  // namespace braid::param
