// The table, tensor by tensor.
#include "braid/plan/torchtitan_memory.h"

#include <algorithm>
#include <cmath>

#include "braid/plan/block_sizes.h"
#include "braid/plan/block_work.h"

namespace braid::plan {
namespace {

using Kept = spec::Recompute::Keeps;

constexpr double kOfFloat = 4;  // bytes

// Bytes of a microbatch's tensors on a rank.
struct TensorsOfFsdp {
  double whole, hidden;  // the hidden state of all tokens; of those that a tensor rank has between its products
  double q, kv, f, statistics, logits, float_logits;
  double norms_in_float;
  bool compiled, asynchronous, several;

  explicit TensorsOfFsdp(const PlannedRun& run)
      : compiled(is_compiled(run.formulas)),
        asynchronous(run.formulas == FormulaSet::TorchtitanAsyncTensor),
        several(run.layout.tensor > 1) {
    const BlockSizes z(run.spec.model);
    const double n = run.layout.tokens, t = run.layout.tensor, en = element_bytes(run.spec.train.dtype) * n;
    whole = en * z.h;
    hidden = whole / t;
    q = en * z.q / t;
    kv = en * z.kv / t;
    f = en * z.k * z.f / t;
    statistics = kOfFloat * n * run.spec.model.heads / t;
    norms_in_float = 2 * kOfFloat * n * z.h / t;
    logits = en * static_cast<double>(run.layout.vocab) / t;
    float_logits = kOfFloat * n * static_cast<double>(run.layout.vocab) / t;
  }

  double block(Kept keeps) const {
    const double gathered = several ? 2 * whole : 0;
    switch (keeps) {
      case Kept::SegmentInputs:
        return hidden;
      case Kept::Selected:
        return hidden + 2 * q + kv + f + statistics + (compiled ? 0 : whole) +
               (several ? (compiled ? 1 : 2) * hidden : 0);
      case Kept::Everything:
        if (compiled) return 2 * hidden + 2 * (q + kv + f) + statistics;
        return 4 * (hidden + q + f) + norms_in_float + gathered + statistics;
    }
    return 0;
  }
  // Returns the bytes that a block's forward pass frees at its end: the gate's tensors, gathered tensors and those to
  // be scattered, and in eager mode a norm in float32.
  double passing() const {
    return (compiled ? 2 * f : 3 * f + norms_in_float) + (several && !asynchronous ? 2 * whole : 0);
  }
};

}  // namespace

double torchtitan_kept_bytes(const PlannedRun& run, const StageLoad& load) {
  const TensorsOfFsdp x(run);
  const Kept keeps = load.recompute.keeps;
  const double segment = keeps == Kept::SegmentInputs ? load.recompute.blocks : 1;
  return std::ceil(load.blocks / segment) * x.block(keeps);
}

double torchtitan_working_bytes(const PlannedRun& run, const StageLoad& load) {
  const TensorsOfFsdp x(run);
  const double again = load.recompute.keeps == Kept::SegmentInputs ? load.recompute.blocks : 1;
  const double block = load.blocks > 0 ? again * x.block(Kept::Everything) + 3 * x.f + 2 * x.whole : 0;
  if (!load.head) return block;
  const double head = x.logits + (x.several ? 4 : 3) * x.float_logits + (x.several ? x.whole : x.hidden);
  return std::max(block, head + (load.blocks > 0 ? x.passing() : 0));
}

double torchtitan_weight_bytes(const PlannedRun& run, const RankShare& share) {
  const double element = element_bytes(run.spec.train.dtype);
  const double all = share.parameters.count(), block = share.block.count();
  if (run.layout.pipe > 1) return (element + kOfFloat) * all;
  if (run.spec.sync.zero < 3) return element * all;
  const double root = std::max(all - share.blocks * block, 0.0);
  return element * (root + std::min(3.0, share.blocks) * block);
}

}  // namespace braid::plan
