// The sink that adds gradients directly to main_grad, in the order in which they arrive.
#include <vector>

#include "braid/param/grad_ledger.h"
#include "braid/param/grad_sink.h"

namespace braid::param {
namespace {

class AccumulatingSink final : public GradSink {
 public:
  explicit AccumulatingSink(ParamStore& store) : ledger_(store) {}

  void begin_step(int num_microbatches) override {
    ledger_.begin_step(num_microbatches);
    started_.assign(ledger_.num_slices(), false);
  }

  GradSlot open(const Parameter& param, int use, int micro) override {
    const int place = ledger_.open(param, use, micro);
    const int slice = ledger_.slice(param, place);
    const double beta = started_[slice] ? 1 : 0;
    started_[slice] = true;
    return {param.use_grads[place].slice, beta};
  }

  void close(const Parameter& param, int use, int micro) override {
    if (ledger_.close(param, use, micro) && on_ready) on_ready(param);
  }

 private:
  GradLedger ledger_;
  std::vector<bool> started_;  // by slice: whether this step has written to it
};

}  // namespace

std::unique_ptr<GradSink> accumulating_sink(ParamStore& store) { return std::make_unique<AccumulatingSink>(store); }

}  // namespace braid::param
