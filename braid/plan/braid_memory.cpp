// The table of braid_memory.h, tensor by tensor.
#include "braid/plan/braid_memory.h"

#include <algorithm>
#include <cmath>

#include "braid/layout/logits.h"
#include "braid/plan/block_sizes.h"
#include "braid/plan/block_work.h"
#include "braid/plan/pass_bytes.h"
#include "braid/plan/stage_chain.h"
#include "braid/spec/partition.h"

namespace braid::plan {
namespace {

using Keeps = spec::Recompute::Keeps;

constexpr double kSingle = 4;
constexpr double kTokenBytes = 16;        // bytes of a token and its target
constexpr double kDocumentBytes = 8;      // bytes of the number of its document
constexpr double kTargetNumbers = 5;      // of each target that backward of the loss has, beside its place
constexpr double kSmallBytes = 64 << 10;  // bytes that the loss, norms and generators keep; twice where sums have parts
constexpr double kMostLogits = layout::kMostLogitBytes;

// Returns the bytes of a chunk of logits. Chunks have equal sizes, and there are as few as the limit allows.
double chunk_of_logits(double rows, double row_bytes) {
  const double most = std::max(1.0, std::floor(kMostLogits / row_bytes));
  return row_bytes * std::ceil(rows / std::ceil(rows / most));
}

double bytes_of(const layout::Kept& kept, const RunSpec& spec, const RunLayout& layout) {
  return element_bytes(spec.train.dtype) * kept.elements.at(layout.extents) + kSingle * kept.floats.at(layout.extents);
}

// Returns the number of stretches of rows whose sums a gradient of a vector is made of (nn/kernels/parallel_rows.h).
double stretches_of(double rows) { return std::ceil(rows / std::max(16.0, rows / 64)); }

// Returns the sums of the gradient of the bias in front of an activation.
double inner_bias_sums(const RunSpec& spec, const RunLayout& layout) {
  const BlockSizes z(spec.model, layout.tensor);
  return z.gated ? 0 : kSingle * stretches_of(layout.tokens) * z.f / layout.tensor;
}

// Returns the sums that wait for the weight-gradient pass in place of gradients: of norms, unless they have the parts
// of reproducible sums, and of the bias in front of an activation.
double pending_sums(const layout::PartAccount& part, const RunSpec& spec, const RunLayout& layout) {
  const bool by_value = layout.account->sums == layout::TensorSums::ByValue;
  const double own_tokens = layout.tokens / (spec.mesh.sequence_parallel ? layout.tensor : 1);
  double sums = 0;
  for (const layout::ParamCount& param : part.params) {
    const bool of_norm = param.op == model::OpKind::LayerNorm || param.op == model::OpKind::RmsNorm;
    if (!of_norm || by_value || param.trained == model::Trained::No) continue;
    sums += kSingle * stretches_of(own_tokens) * param.rows.at(layout.extents.all);
  }
  const auto is_trained_bias = [](const layout::ParamCount& param) {
    return param.op == model::OpKind::Bias && param.trained != model::Trained::No;
  };
  const bool activates = part.products.size() > 1 && part.attention_flops.at(layout.extents.all) == 0;
  return sums + (activates && std::ranges::any_of(part.params, is_trained_bias) ? inner_bias_sums(spec, layout) : 0);
}

PartBytes bytes_of_part(const layout::PartAccount& part, const RunSpec& spec, const RunLayout& layout) {
  const double masks = part.masked.at(layout.extents);
  const bool attends = part.attention_flops.at(layout.extents.all) > 0 && part.attends_backward;
  const double moved = attends ? context_memory(spec, layout).kept : 0;
  return {bytes_of(part.everything, spec, layout) + masks + moved, bytes_of(part.selected, spec, layout) + masks,
          bytes_of(part.pending, spec, layout) + pending_sums(part, spec, layout),
          part.runs_backward ? 0 : 1 / static_cast<double>(layout.account->parts_of_layer())};
}

TrainedMatrices trained_matrices(const RunLayout& layout, size_t kind) {
  const size_t count = layout.account->parts_of_layer();
  TrainedMatrices trained;
  for (size_t part = kind * count; part < (kind + 1) * count; ++part) {
    const layout::PartAccount& ops = layout.account->parts[part];
    if (ops.products.empty()) continue;
    const bool first = ops.products.front().gradients.of_weight;
    if (ops.attention_flops.at(layout.extents.all) > 0) {
      trained.qkv = first;
    } else {
      trained.up = first, trained.down = ops.products.back().gradients.of_weight;
    }
  }
  return trained;
}

// Returns the number of blocks before the first that backward runs.
double skipped_blocks(const ActivationBytes& x, const StageLoad& load) {
  return load.of_parts([&](size_t part) { return x.parts[part].skipped; });
}

double hidden_bytes(const RunSpec& spec, const RunLayout& layout) {
  const double ranks = spec.mesh.sequence_parallel ? layout.tensor : 1;
  return element_bytes(spec.train.dtype) * layout.tokens * spec.model.width / ranks;
}

// Returns the bytes at the end of a separate pass of input gradients beyond what the stage kept before it: its products
// wait with their inputs and gradients, beside the gradient that the stage returns.
double waiting_at_end(const PlannedRun& run, const ActivationBytes& x, const StageLoad& load) {
  if (!spec::traits_of(run.spec.pipeline)->splits_backward) return 0;
  return pending_kept_bytes(x, load) - kept_bytes(x, load) + x.before_product();
}

// The borders of a rank's stages with those of other ranks.
struct Edges {
  int both_ways = 0, forward_only = 0;  // forward_only: no gradient crosses it
  int kept_inputs = 0;                  // of these, the borders whose hidden state a backward reads
};
Edges edges_of(const RunLayout& layout, schedule::StagePlacement placement, int rank) {
  Edges edges;
  for (size_t stage = 0; stage + 1 < layout.stages.size(); ++stage) {
    const int from = schedule::owner_of_stage(placement, layout.pipe, static_cast<int>(stage));
    const int to = schedule::owner_of_stage(placement, layout.pipe, static_cast<int>(stage) + 1);
    if (from == to || (from != rank && to != rank)) continue;
    const bool gradient = layout.stages[stage].backward != StageBackward::Nothing;
    ++(gradient ? edges.both_ways : edges.forward_only);
    if (!gradient && to == rank && layout.stages[stage + 1].backward != StageBackward::Nothing) ++edges.kept_inputs;
  }
  return edges;
}

}  // namespace

ActivationBytes::ActivationBytes(const RunSpec& spec, const RunLayout& layout) {
  const layout::ModelAccount& account = *layout.account;
  for (const layout::PartAccount& part : account.parts) parts.push_back(bytes_of_part(part, spec, layout));
  for (size_t kind = 0; kind < account.num_kinds(); ++kind) trained.push_back(trained_matrices(layout, kind));
  const ModelSpec& model = spec.model;
  const BlockSizes z(model, layout.tensor);
  const double of_row = element_bytes(spec.train.dtype) * layout.tokens, t = layout.tensor;
  const double g = z.gated ? 2 : 1;
  hidden = hidden_bytes(spec, layout);
  all_tokens = of_row * model.width;
  if (spec.mesh.sequence_parallel) {
    gathered = all_tokens;
    exchanged = spec.train.microbatch > 1 ? all_tokens : 0;
  }
  context = context_memory(spec, layout);
  qkv = of_row * (z.q + 2 * z.kv) / t;
  heads = of_row * z.q / t;
  activated = of_row * z.k * z.f / t;
  inner = g * activated;
  inner_sums = inner_bias_sums(spec, layout);
  if (z.experts > 0) {
    routed = hidden * z.k;
    chosen = kSingle * layout.tokens * z.experts / (spec.mesh.sequence_parallel ? t : 1);
  }
  if (model.dropout > 0) mask = hidden / element_bytes(spec.train.dtype);
  const double element = element_bytes(spec.train.dtype), rows = account.loss_rows.at(layout.extents.all);
  embedding = bytes_of(account.positions.everything, spec, layout);
  embedding_selected = bytes_of(account.positions.selected, spec, layout);
  picks_rows = account.picks_rows;
  ends_in_norm = account.ends_in_norm;
  of_logits = account.of_logits;
  embedding_runs_backward = account.positions.runs_backward;
  const double loss_input = element * account.loss_input.at(layout.extents);
  head_selected = element * account.last_norm.selected.elements.at(layout.extents) + loss_input;
  head_everything = element * account.last_norm.everything.elements.at(layout.extents) + loss_input;
  logits = element * rows * static_cast<double>(layout.vocab) / t;
  // In reproducible mode the limit is that of all ranks' columns (nn/language_head.h).
  const bool by_value = account.sums == layout::TensorSums::ByValue;
  const double ranks = by_value ? t : 1;
  whole_logits = logits * ranks <= kMostLogits;
  if (by_value && layout.tensor > 1 && element < kSingle) widened = kSingle * layout.tokens * model.width;
  head_product = {rows, static_cast<double>(model.width), static_cast<double>(layout.vocab) / t};
  const double number = std::max(kSingle, element);
  if (whole_logits) logits += rows * (kTargetNumbers * number + kTokenBytes / 2);
  if (whole_logits) return;
  if (widened > 0) head_everything += widened - all_tokens;
  logits = chunk_of_logits(rows, logits * ranks / rows) / ranks;
  head_product.rows = logits / (element * head_product.outputs);
}

double ActivationBytes::before_product() const {
  const double wider = widened > 0 ? widened / all_tokens : 1;
  return wider * (gathered > 0 ? gathered + exchanged + hidden : all_tokens);
}

double kept_bytes(const ActivationBytes& x, const StageLoad& load) {
  if (load.recompute.is_by_segments()) return chain_memory(stage_chain(x, load), segments_of(load)).kept;
  const Keeps keeps = load.recompute.keeps;
  const double head = load.head ? head_kept_bytes(x, keeps) : 0;
  const bool embedding = load.embedding && x.embedding_runs_backward;
  const double output = load.backward == StageBackward::Nothing ? 0 : x.hidden;
  const double of_embedding = x.mask + (keeps == Keeps::Selected ? x.embedding_selected : x.embedding);
  const double ends = (embedding ? of_embedding : 0) + (load.head ? head : output);
  if (keeps == Keeps::Selected) return ends + load.of_parts([&](size_t part) { return x.parts[part].selected; });
  return ends + load.of_parts([&](size_t part) { return x.parts[part].everything; });
}

double pending_kept_bytes(const ActivationBytes& x, const StageLoad& load) {
  const double blocks = load.of_parts([&](size_t part) { return x.parts[part].pending; });
  return blocks + (load.head ? head_pending_bytes(x) : 0) +
         (load.embedding && x.embedding_runs_backward ? x.all_tokens : 0);
}

WorkingBytes working_bytes_at(const PlannedRun& run, const ActivationBytes& x, const StageLoad& load) {
  const double of_head = load.head ? head_working_bytes(run, x) : 0;
  if (load.recompute.is_by_segments()) {
    return {.in_block = chain_memory(stage_chain(run, x, load), segments_of(load)).working, .in_head = of_head};
  }
  const Keeps keeps = load.recompute.keeps;
  const double skipped = skipped_blocks(x, load);
  const double waits = waits_in_a_line(run) ? head_pending_bytes(x) : 0;
  const double in_head = load.head ? head_kept_bytes(x, keeps) - waits : 0;  // freed when blocks run
  const BlockPlace last{.keeps = keeps, .kind = static_cast<size_t>(load.last_kind), .gradient_is_ours = load.head};
  double block = load.blocks > skipped ? block_working_bytes(run, x, last) : 0;
  if (output_stays(run, x, load)) block += x.hidden;
  if (skipped > 0) block = std::max(block, forward_bytes(x, load) - kept_bytes(x, load) + in_head);
  return {.in_block = std::max(block - in_head, 0.0),
          .in_head = of_head,
          .at_end = waiting_at_end(run, x, load),
          .unused = std::max(in_head - block, 0.0)};
}

double working_most_bytes(const PlannedRun& run, const ActivationBytes& x, const StageLoad& load) {
  const WorkingBytes bytes = working_bytes_at(run, x, load);
  return std::max({bytes.in_block, bytes.in_head, bytes.at_end});
}

double weight_working_bytes(const PlannedRun& run, const ActivationBytes& x, const StageLoad& load) {
  const WorkingBytes bytes = working_bytes_at(run, x, load);
  return std::max(bytes.in_block, bytes.in_head);
}

double constant_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load) {
  const bool by_document = spec.data.attention == AttentionMask::Document;
  const double batch = (kTokenBytes + (by_document ? kDocumentBytes : 0)) * layout.microbatches *
                       spec.train.microbatch * spec.model.context;
  const auto of_part = [&](size_t part) { return layout.account->parts[part].tables.at(layout.extents.all); };
  const double tables = load.of_parts(of_part);
  const double small = spec.train.reduction == Reduction::Reproducible ? 2 * kSmallBytes : kSmallBytes;
  return batch + small + kSingle * tables;
}

double passed_bytes(const PlannedRun& run, int rank) {
  const RunLayout& layout = run.layout;
  if (layout.pipe == 1) return 0;
  const bool several = layout.stages.size() > static_cast<size_t>(layout.pipe);
  const bool both_ways = several || (layout.pipe > 2 && !waits_in_a_line(run));
  const Edges edges = edges_of(layout, spec::traits_of(run.spec.pipeline)->placement, rank);
  const int most = both_ways ? 4 : 2;
  const int hidden =
      edges.both_ways == 0 ? edges.forward_only + edges.kept_inputs : std::max(most - edges.forward_only, 1);
  return hidden * hidden_bytes(run.spec, layout);
}

}  // namespace braid::plan
