// The tables of torchtitan.h, tensor by tensor.
#include "braid/plan/torchtitan.h"

#include <algorithm>
#include <cmath>

#include "braid/plan/block_sizes.h"
#include "braid/plan/block_work.h"

namespace braid::plan {
namespace {

constexpr double kWide = 4;  // bytes of a float32 number

struct Widths : BlockSizes {
  double n, e, t;
  double shared;  // fraction of the tokens on a tensor rank between products (torchtitan shards sequences)

  Widths(const RunSpec& spec, const RunLayout& layout)
      : BlockSizes(spec.model, layout.tensor),
        n(layout.tokens),
        e(element_bytes(spec.train.dtype)),
        t(layout.tensor),
        shared(1 / static_cast<double>(layout.tensor)) {}
};

struct EachWay {
  double forward, backward;
};

EachWay norm_bytes(const Widths& z, FormulaSet formulas, bool behind_a_sum) {
  if (is_compiled(formulas)) return {(behind_a_sum ? 4 : 2) * z.e * z.h, 6 * z.e * z.h};
  return {(24 + 4 * z.e + (behind_a_sum ? 3 * z.e : 0)) * z.h, (60 + 8 * z.e + (behind_a_sum ? 3 * z.e : 0)) * z.h};
}

double rotary_bytes(const Widths& z, FormulaSet formulas) {
  const double repeated = z.q > z.kv ? 2 * z.e * (z.q + z.kv) : 0;
  return is_compiled(formulas) ? z.e * (4 * z.q + 2 * z.kv) : (16 + 2 * z.e) * (z.q + z.kv) + repeated;
}

EachWay activation_bytes(const Widths& z, FormulaSet formulas) {
  return is_compiled(formulas) ? EachWay{3 * z.e * z.f, 6 * z.e * z.f} : EachWay{5 * z.e * z.f, 9 * z.e * z.f};
}

Product product(const Widths& z, double in, double out) {
  return {2 * z.n * in * out, z.e * (z.n * in + in * out + z.n * out)};
}

// Adds the recomputed communication. The all-gather before the half's products is repeated, and the reduce-scattered
// sum behind them is saved: half of an all-reduce.
void gather_again(const PartWork& work, PassWork& again) {
  again.reduced_bytes = work.forward.reduced_bytes / 2;
  again.num_reductions = work.forward.num_reductions;
}

}  // namespace

void count_torchtitan_attention(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas, PartWork& work) {
  const Widths z(spec, layout);
  const EachWay norm = norm_bytes(z, formulas, false);
  const double rotary = rotary_bytes(z, formulas) / z.t;
  work.forward.streamed_bytes = z.n * (z.shared * norm.forward + rotary);
  work.input_grad.streamed_bytes = z.n * (z.shared * norm.backward + rotary);
  work.full = work.selected = work.forward;
  work.selected.attention = {};
  work.selected.products = {product(z, z.h, z.kv / z.t), product(z, z.q / z.t, z.h)};
  gather_again(work, work.selected);
}

void count_torchtitan_feed(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas, PartWork& work) {
  const Widths z(spec, layout);
  if (z.experts > 0) return;
  const EachWay norm = norm_bytes(z, formulas, true), activation = activation_bytes(z, formulas);
  const double recomputed = z.n * (z.shared * norm.forward + activation.forward / z.t);
  work.forward.streamed_bytes = recomputed + z.n * z.shared * 3 * z.e * z.h;
  work.input_grad.streamed_bytes = z.n * (z.shared * norm.backward + activation.backward / z.t);
  work.full = work.selected = {.streamed_bytes = recomputed};
  work.selected.products = {product(z, z.h, z.f / z.t)};
  work.full.products = {product(z, z.h, (z.gated ? 2 : 1) * z.f / z.t)};
  gather_again(work, work.selected);
  gather_again(work, work.full);
}

void count_torchtitan_loss(const RunSpec& spec, const RunLayout& layout, PartWork& work) {
  const Widths z(spec, layout);
  const double vocab = static_cast<double>(layout.vocab) / z.t;
  const EachWay norm = norm_bytes(z, FormulaSet::Torchtitan, false);
  work.forward.streamed_bytes = z.n * (z.shared * norm.forward + (4 * kWide + z.e) * vocab);
  work.input_grad.streamed_bytes = z.n * (z.shared * norm.backward + (6 * kWide + z.e) * vocab);
}

namespace {

using Kept = spec::Recompute::Keeps;

constexpr double kOfFloat = 4;  // bytes of a float32 number

// Bytes of a microbatch's tensors on a rank.
struct TensorsOfFsdp {
  double whole, hidden;  // hidden state of all tokens; of a tensor rank's tokens between products
  double q, kv, f, statistics, logits, float_logits;
  double norms_in_float;
  bool compiled, asynchronous, several;

  explicit TensorsOfFsdp(const PlannedRun& run)
      : compiled(is_compiled(run.formulas)),
        asynchronous(run.formulas == FormulaSet::TorchtitanAsyncTensor),
        several(run.layout.tensor > 1) {
    const BlockSizes z(run.spec.model, run.layout.tensor);
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
      case Kept::Listed:
        if (compiled) return 2 * hidden + 2 * (q + kv + f) + statistics;
        return 4 * (hidden + q + f) + norms_in_float + gathered + statistics;
    }
    return 0;
  }
  // Returns the bytes that a block's forward pass frees at its end: the gate's tensors, in eager mode the float32
  // tensors of norms, and with several tensor ranks the gathered tensors and those to be scattered, unless they are
  // exchanged asynchronously.
  double passing() const {
    return (compiled ? 2 * f : 3 * f + norms_in_float) + (several && !asynchronous ? 2 * whole : 0);
  }
};

}  // namespace

double torchtitan_kept_bytes(const PlannedRun& run, const StageLoad& load) {
  const TensorsOfFsdp x(run);
  const Kept keeps = load.recompute.keeps;
  const ListedCounts listed = listed_counts(load);
  if (keeps == Kept::Listed) {
    return (load.blocks - listed.blocks) * x.block(Kept::Everything) + listed.segments * x.block(Kept::SegmentInputs);
  }
  const double segment = keeps == Kept::SegmentInputs ? load.recompute.blocks : 1;
  return std::ceil(load.blocks / segment) * x.block(keeps);
}

double torchtitan_working_bytes(const PlannedRun& run, const StageLoad& load) {
  const TensorsOfFsdp x(run);
  const double segment = load.recompute.keeps == Kept::SegmentInputs ? load.recompute.blocks : 1;
  const double again = std::max(segment, listed_counts(load).longest);
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
