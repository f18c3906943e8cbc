// The table, kernel by kernel.
#include "braid/plan/torchtitan_work.h"

#include "braid/plan/block_sizes.h"

namespace braid::plan {
namespace {

constexpr double kWide = 4;  // bytes

struct Widths : BlockSizes {
  double n, e, t;
  double shared;  // part of the tokens that a tensor rank has between its products: torchtitan shards sequences

  Widths(const RunSpec& spec, const RunLayout& layout)
      : BlockSizes(spec.model),
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

// A gather before the half's products is computed again, the scattered sum behind them is saved: half of a reduction.
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

}  // namespace braid::plan
