// Counts the work of a block, kernel by kernel as Megatron-LM's or braid's block runs them.
#include "braid/plan/block_work.h"

#include <algorithm>

#include "braid/plan/block_sizes.h"
#include "braid/plan/torchtitan.h"
#include "braid/spec/context_rules.h"

namespace braid::plan {
namespace {

constexpr double kFloat = 4;  // bytes; gradients of weights and the loss are computed in float32

// The sizes of block_work.h.
struct Sizes : BlockSizes {
  double n, e, t, s;
  double summed;  // bytes of an element in sums of products over tensor ranks
  double whole;   // fraction of replicated work on one tensor rank: 1, or 1/t under sequence parallelism
  double drop;    // 1 with dropout, else 0

  Sizes(const RunSpec& spec, const RunLayout& layout)
      : BlockSizes(spec.model, layout.tensor),
        n(layout.tokens),
        e(element_bytes(spec.train.dtype)),
        t(layout.tensor),
        s(spec.model.context),
        summed(layout.account->sums == layout::TensorSums::ByValue ? std::max(e, kFloat) : e),
        whole(spec.mesh.sequence_parallel ? 1 / t : 1),
        drop(spec.model.dropout > 0 ? 1 : 0) {}
};

// The product of x (rows x in) and a weight (in x out).
struct WeightProduct {
  double rows, in, out;
  layout::ProductGradients gradients;

  WeightProduct(const layout::ProductCount& count, const layout::RankExtents& extents, double parts = 1)
      : WeightProduct(count.rows.at(extents) / parts, count.in.at(extents.all), count.out.at(extents.all),
                      count.gradients) {}
  WeightProduct(double its_rows, double its_in, double its_out, layout::ProductGradients its_gradients)
      : rows(its_rows), in(its_in), out(its_out), gradients(its_gradients) {}
};

// Adds the product to forward, and its gradients to the two other passes.
void add_product(PartWork& work, const Sizes& z, const WeightProduct& x) {
  const double flops = 2 * x.rows * x.in * x.out;
  const Product product{flops, z.e * (x.rows * x.in + x.in * x.out + x.rows * x.out)};
  work.forward.products.push_back(product);
  if (x.gradients.of_input) work.input_grad.products.push_back(product);
  if (!x.gradients.of_weight) return;
  work.weight_grad.products.push_back({flops, z.e * (x.rows * x.in + x.rows * x.out) + 2 * kFloat * x.in * x.out});
}

// Adds the exchange of tokens with the experts' ranks. Every tensor rank sends all tokens or, under sequence
// parallelism, only its own.
void add_routes(PartWork& work, const Sizes& z, const RunLayout& layout) {
  for (PassWork* pass : {&work.forward, &work.input_grad}) {
    pass->routed_bytes = z.whole * z.n * z.e * z.k * z.h;
    pass->num_routes = layout.expert > 1 ? 2 : 0;
  }
}

void add_stored_attention(PartWork& work, const layout::PartAccount& part, const Sizes& z, double heads) {
  const double scores = z.n * z.s * heads / z.t;
  const Product product{2 * z.n * z.s * z.q / z.t, z.e * (scores + 2 * z.n * z.q / z.t)};
  const double forward_bytes = scores * (2 * z.e + z.drop * (2 * z.e + 1));
  for (PassWork* pass : {&work.forward, &work.selected}) {
    if (pass == &work.selected && !part.attends_backward) return;
    pass->products.insert(pass->products.end(), 2, product);
    pass->streamed_bytes += forward_bytes;
  }
  // Backward has two products for each forward product. Both read or write scores, so they count as one product of
  // twice the size.
  for (int i = 0; i < 2; ++i) work.input_grad.products.push_back({2 * product.flops, 2 * product.bytes});
  work.input_grad.streamed_bytes += scores * (3 * z.e + z.drop * (2 * z.e + 1));
}

void add_fused_attention(PartWork& work, const layout::PartAccount& half, const Sizes& z, const RunLayout& layout) {
  const double bytes = z.e * half.attention_elements.at(layout.extents.all);
  const double flops = half.attention_flops.at(layout.extents.all);
  work.forward.attention = {flops, bytes};
  if (!half.attends_backward) return;
  work.selected.attention = {flops, bytes};
  work.input_grad.attention = {2.5 * flops, 2 * bytes};
}

// Returns the products and memory-bound kernels of one half of a block.
PartWork counted_work(const layout::PartAccount& half, const Sizes& z, const RunLayout& layout, FormulaSet formulas) {
  const layout::RankExtents& extents = layout.extents;
  PartWork work;
  const double experts = extents.all['e'];
  for (const layout::ProductCount& product : half.products) add_product(work, z, {product, extents});
  for (int expert = 0; expert < experts; ++expert) {
    for (const layout::ProductCount& product : half.expert_products) add_product(work, z, {product, extents, experts});
  }
  const double masks = half.masked.at(extents);
  work.forward.streamed_bytes = z.e * half.forward.at(extents) + masks;
  work.input_grad.streamed_bytes = z.e * half.backward.at(extents) + masks;
  if (formulas == FormulaSet::Braid) work.selected.streamed_bytes = z.e * half.recomputed.at(extents);
  return work;
}

// Adds the all-reduces over tensor ranks (Narayanan et al. 2021, section 3.2). Under sequence parallelism the
// all-gather that belongs to a reduce-scatter sends rounded sums.
void add_sums(PartWork& work, const layout::PartAccount& part, const Sizes& z, const RunLayout& layout) {
  const double wider = part.float_sums == 0 ? 0 : (z.summed - z.e) * part.float_sums / part.forward_sums;
  const double scatters = z.whole < 1 ? 0.5 : 1;
  work.forward.reduced_bytes = (z.e + wider * scatters) * z.n * z.h;
  work.input_grad.reduced_bytes = (z.e + (z.summed - z.e) * scatters) * z.n * z.h;
  if (layout.tensor == 1) return;
  work.forward.num_reductions += part.forward_sums;
  work.input_grad.num_reductions += part.backward_sums;
}

// Adds all-reduces of gradients of parameters: those of key heads that tensor ranks hold copies of, as if all of these
// ranks took part, and under sequence parallelism those of ops between the products.
void add_copies(PartWork& work, const layout::PartAccount& part, const RunSpec& spec, const RunLayout& layout) {
  const Sizes z(spec, layout);
  PassWork& pass = work.weight_grad;
  const auto is_trained = [](const layout::ProductCount& product) { return product.gradients.of_weight; };
  const bool trains = std::ranges::any_of(part.products, is_trained);
  double elements = 0;
  if (trains && layout.tensor > model::num_kv_heads(spec.model) && part.attention_flops.at(layout.extents.all) > 0) {
    elements += 2 * z.kv / z.t * z.h;
    ++pass.num_reductions;
  }
  if (spec.mesh.sequence_parallel) {
    elements += part.summed_params.at(layout.extents.all);
    pass.num_reductions += part.num_summed_params;
  }
  if (pass.num_reductions > 0) pass.reduced_bytes = kFloat * elements / pass.num_reductions;
}

// Adds products, attention and sums of the ops that embedding or head has beside its table.
void add_beside_table(PartWork& work, const layout::PartAccount& part, const Sizes& z, const RunLayout& layout) {
  for (const layout::ProductCount& product : part.products) add_product(work, z, {product, layout.extents});
  add_fused_attention(work, part, z, layout);
  add_sums(work, part, z, layout);
}

// Adds the all-gathers of keys and values over `ranks` context ranks. What goes around a ring is as much.
void add_gathers(PartWork& work, const layout::PartAccount& part, const Sizes& z, int ranks) {
  if (ranks == 1) return;
  work.forward.context_bytes = work.input_grad.context_bytes = z.e * z.n * ranks * 2 * z.kv / z.t;
  work.forward.num_gathers = 1;
  work.input_grad.num_gathers = part.attends_backward ? 2 : 0;
}

// Adds the all-to-alls of braid's forms of context parallelism: of tokens for heads, and to the places around the ring
// (nn/ring_attention.h). Each moves queries, keys and values, and the outputs.
void add_exchanges(PartWork& work, const layout::PartAccount& part, const Sizes& z, const RunSpec& spec) {
  const int exchanges = (spec::exchange_ranks(spec) > 1 ? 1 : 0) + (spec::ring_ranks(spec) > 1 ? 1 : 0);
  work.forward.exchanged_bytes = work.input_grad.exchanged_bytes = z.e * z.n * 2 * (z.q + z.kv) / z.t;
  work.forward.num_exchanges = exchanges;
  for (PassWork* pass : {&work.forward, &work.input_grad, &work.selected}) {
    pass->attention.flops *= spec::most_exchanged_heads(spec);
  }
  work.input_grad.num_exchanges = part.attends_backward ? exchanges : 0;
}

// Adds what context ranks copy and merge in memory, in elements of a rank's tokens (block_work.h).
void add_copies_of_context(PartWork& work, const layout::PartAccount& part, const Sizes& z, const RunSpec& spec) {
  const double element = z.e * z.n / z.t, q = z.q, kv = z.kv, ring = spec::ring_ranks(spec);
  double forward = 0, backward = 0;
  if (spec::exchange_ranks(spec) > 1) forward = backward = 8 * (q + kv);
  if (ring > 1) {
    const double blocks = ring + 0.5;  // blocks that each query and key meets under a causal mask, on average
    forward += 7 * blocks * q + 4 * q + 2 * kv;
    backward += 3 * blocks * (q + 2 * kv) + 4 * q + 2 * (4 * ring - 1) * kv;
  }
  work.forward.streamed_bytes += element * forward;
  if (!part.attends_backward) return;
  work.selected.streamed_bytes += element * forward;
  work.input_grad.streamed_bytes += element * backward;
}

}  // namespace

double element_bytes(DType type) {
  switch (type) {
    case DType::Float64:
      return 8;
    case DType::Float32:
      return 4;
    case DType::BFloat16:
    case DType::Float16:
      return 2;
  }
  return 4;
}

PartWork part_work(const RunSpec& spec, const RunLayout& layout, size_t number, FormulaSet formulas) {
  const Sizes z(spec, layout);
  const layout::PartAccount& part = layout.account->parts[number];
  const bool attends = part.attention_flops.at(layout.extents.all) > 0, is_braids = formulas == FormulaSet::Braid;
  PartWork work = counted_work(part, z, layout, formulas);
  if (attends && stores_scores(formulas, spec.model)) {
    add_stored_attention(work, part, z, spec.model.heads);
  } else {
    add_fused_attention(work, part, z, layout);
  }
  if (!part.expert_products.empty()) add_routes(work, z, layout);
  add_sums(work, part, z, layout);
  if (is_braids) {
    add_copies(work, part, spec, layout);
    work.input_grad.gathered_again = spec.mesh.sequence_parallel ? part.gathered_again : 0;
    work.input_grad.gathered_bytes = z.e * z.n * z.h;
  }
  if (attends) add_gathers(work, part, z, is_braids ? spec::ring_ranks(spec) : layout.context);
  if (attends && is_braids) add_exchanges(work, part, z, spec);
  if (attends && is_braids) add_copies_of_context(work, part, z, spec);
  if (part.runs_backward) work.full = work.forward;
  if (!is_torchtitan(formulas)) return work;
  attends ? count_torchtitan_attention(spec, layout, formulas, work)
          : count_torchtitan_feed(spec, layout, formulas, work);
  return work;
}

PartWork embedding_work(const RunSpec& spec, const RunLayout& layout) {
  const Sizes z(spec, layout);
  PartWork work;
  work.forward.streamed_bytes = z.n * z.h * (2 * z.e + z.drop * (2 * z.e + 1));
  work.forward.num_reductions = layout.tensor > 1 ? 1 : 0;
  if (layout.account->positions.runs_backward) work.weight_grad.streamed_bytes = z.n * z.h * (z.e + 2 * kFloat);
  add_beside_table(work, layout.account->positions, z, layout);
  return work;
}

PartWork head_work(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas) {
  const Sizes z(spec, layout);
  const double vocab = static_cast<double>(layout.vocab) / z.t;
  PartWork work;
  const double rows = layout.account->loss_rows.at(layout.extents.all);
  add_product(work, z, {rows, z.h, vocab, layout.account->of_logits});
  // Forward reads the logits, writes float32 exponentials and reads these for the loss. Backward reads the exponentials
  // and writes gradients.
  work.forward.streamed_bytes = rows * (2 * z.e * z.whole * z.h + (z.e + 2 * kFloat) * vocab);
  work.input_grad.streamed_bytes = rows * (3 * z.e * z.whole * z.h + (kFloat + z.e) * vocab);
  work.input_grad.num_reductions = layout.tensor > 1 && layout.account->of_logits.of_input ? 1 : 0;
  add_beside_table(work, layout.account->last_norm, z, layout);
  if (is_torchtitan(formulas)) count_torchtitan_loss(spec, layout, work);
  return work;
}

}  // namespace braid::plan
