// A sink for sharded gradients. The gradients of a unit from one microbatch are written into a buffer of their own. The
// listener of `on_unit` takes the buffer when it is full. The sink keeps no sum over microbatches.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "braid/param/grad_ledger.h"
#include "braid/param/grad_sink.h"

namespace braid::param {

class UnitSink final : public GradSink {
 public:
  // REQUIRES: `store` shards gradients and outlives this.
  explicit UnitSink(ParamStore& store) : store_(store), ledger_(store) {}

  // Called from close() when all local uses of all of the unit's parameters have closed microbatch `micro`. `gradient`
  // is 1-D, as long as the unit, and zero in its padding. The listener returns its memory by recycle().
  std::function<void(int unit, int micro, const at::Tensor& gradient)> on_unit;
  void recycle(const at::Tensor& gradient) { free_[gradient.numel()].push_back(gradient); }

  void begin_step(int num_microbatches) override;
  GradSlot open(const Parameter& param, int use, int micro) override;
  void close(const Parameter& param, int use, int micro) override;

 private:
  struct Filling {
    at::Tensor gradient;
    int num_left = 0;           // number of contributions that have not been closed
    std::vector<bool> started;  // by parameter of the unit: whether a contribution has been opened
  };
  Filling& filling(int unit, int micro);
  at::Tensor buffer(int unit);

  ParamStore& store_;
  GradLedger ledger_;
  std::map<std::pair<int, int>, Filling> filling_;   // by unit and microbatch
  std::map<int64_t, std::vector<at::Tensor>> free_;  // by length
};

}  // namespace braid::param
