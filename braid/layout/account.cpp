// The interpreter of a graph that counts.
#include "braid/layout/account.h"

#include <algorithm>
#include <set>
#include <span>

#include "braid/layout/tensor_sums.h"
#include "braid/model/families.h"
#include "braid/model/model_flops.h"
#include "braid/model/op_table.h"
#include "braid/model/shape.h"
#include "braid/model/trained.h"

namespace braid::layout {
namespace {

ParamCount count_of(const model::OpAt& at, const model::Param& param) {
  const auto held = at.is_among_experts() ? HeldBy::ExpertRanks : HeldBy::EveryRank;
  const model::Dims dims(param.dims.begin() + (held == HeldBy::ExpertRanks ? 1 : 0), param.dims.end());
  if (dims.empty()) return {at.op.kind, model::Terms(dims), model::Terms(dims), held, param.trained};
  return {at.op.kind, model::Terms(dims[0]), model::Terms(model::Dims(dims.begin() + 1, dims.end())), held,
          param.trained};
}

bool has_split_letter(const model::Dims& dims) {
  return model::text_of(dims).find_first_of(model::kTensorLetters) != std::string::npos;
}

bool is_between(const model::OpAt& at) {
  const auto is_whole = [&](int value) { return !has_split_letter(at.block.values[value]); };
  return std::ranges::all_of(at.op.in, is_whole) && is_whole(at.op.out) &&
         std::ranges::none_of(at.op.params, has_split_letter, &model::Param::dims);
}

void add(const model::OpAt& at, const model::Terms& terms, Count& count) {
  (is_between(at) ? count.between : count.all) += terms;
}

void add_product(const model::OpAt& at, ProductGradients gradients, PartAccount& account) {
  ProductCount product{{}, model::Terms(at.in().back()), model::Terms(at.out().back()), gradients};
  add(at, at.rows(), product.rows);
  (at.is_among_experts() ? account.expert_products : account.products).push_back(std::move(product));
}

void add_value(const model::BlockGraph& block, int value, Count& count) {
  const model::Dims& dims = block.values[value];
  (has_split_letter(dims) ? count.all : count.between) += model::Terms(dims);
}

bool is_recomputed(const model::BlockGraph& block, int value) {
  const auto producer = std::ranges::find(block.ops, value, &model::Op::out);
  return producer != block.ops.end() && producer->row->output != model::Recomputed::No;
}

bool is_norm(const model::Op& op) { return op.kind == model::OpKind::LayerNorm || op.kind == model::OpKind::RmsNorm; }

// Adds what the ops keep. A value is kept once, however many ops read it.
void add_kept(const model::BlockGraph& block, std::span<const model::Op> ops, PartAccount& account) {
  const std::vector<bool> has_gradient = model::values_with_gradient(block);
  std::set<int> kept, normed;  // a norm keeps its input even if a product could recompute it
  for (const model::Op& op : ops) {
    if (!has_gradient[op.out]) continue;
    const model::OpRow& row = *op.row;
    for (Kept* part : {&account.everything, &account.selected}) {
      if (part == &account.selected && row.output == model::Recomputed::Run) continue;
      add({block, op}, row.copies({block, op}), part->elements);
      add({block, op}, row.statistics({block, op}), part->floats);
    }
    if (model::keeps_input(block, op)) kept.insert(op.in[0]);
    if (is_norm(op)) normed.insert(op.in[0]);
  }
  for (const int value : kept) {
    add_value(block, value, account.everything.elements);
    if (normed.contains(value) || !is_recomputed(block, value)) add_value(block, value, account.selected.elements);
  }
}

// Adds the input of a product and the gradient of its output.
void add_pending(const model::OpAt& at, PartAccount& account) {
  const bool scores = at.out().back() == model::dims_of("s")[0];
  add(at, model::Terms(at.in()), account.pending.elements);
  add(at, model::Terms(at.out()), scores ? account.pending.floats : account.pending.elements);
}

void add_op(const model::OpAt& at, PartAccount& account) {
  const model::OpRow& row = *at.op.row;
  const model::Traffic traffic = row.traffic(at);
  const std::vector<bool> has_gradient = model::values_with_gradient(at.block);
  const bool has_backward = has_gradient[at.op.out];
  add(at, traffic.forward, account.forward);
  if (has_backward) add(at, traffic.backward, account.backward);
  if (at.op.kind == model::OpKind::Linear) {
    const ProductGradients gradients{has_gradient[at.op.in[0]], model::is_trained(at.op.params[0])};
    add_product(at, gradients, account);
    if (gradients.of_weight) add_pending(at, account);
  }
  if (at.op.kind == model::OpKind::Rotary) account.tables += model::Terms(model::dims_of("pd"));
  if (at.op.kind == model::OpKind::Dropout && has_backward) add(at, model::Terms(at.out()), account.masked);
  if (at.op.kind == model::OpKind::Attention) {
    account.attention_flops += row.flops(at);
    account.attention_elements += model::Terms(at.in()) + model::Terms(at.out());
    account.attends_backward = has_backward;
  } else if (row.output == model::Recomputed::Apply && has_backward) {
    add(at, traffic.forward, account.recomputed);
  }
}

// Counts the sums over tensor ranks. Joined: the gradient of a value is summed once for all ops that read it.
void count_sums(const model::BlockGraph& block, std::span<const model::Op> ops, TensorSums sums, PartAccount& account) {
  const std::vector<bool> summed = summed_values(block, sums), has_gradient = model::values_with_gradient(block);
  std::set<int> copied;
  for (const model::Op& op : ops) {
    if (sums_input_gradient(block, op) && has_gradient[op.in[0]]) {
      account.backward_sums += copied.insert(op.in[0]).second || sums == TensorSums::ByValue ? 1 : 0;
    }
    if (summed[op.out]) ++account.forward_sums;
    if (summed[op.out] && sums_in_float(op, sums)) ++account.float_sums;
    if (gathers_tokens(block, op) && op.kind == model::OpKind::Linear && model::is_trained(op.params[0]))
      ++account.gathered_again;
    if (!splits_tokens(block, op)) continue;
    for (const model::Param& param : op.params) {
      if (!model::is_trained(param)) continue;
      account.summed_params += model::Terms(param.dims);
      ++account.num_summed_params;
    }
  }
}

PartAccount count(const model::BlockGraph& block, std::span<const model::Op> ops, TensorSums sums) {
  PartAccount account;
  account.runs_backward = model::values_with_gradient(block)[block.ops.back().out];
  count_sums(block, ops, sums, account);
  for (const model::Op& op : ops) {
    const model::OpAt at{block, op};
    for (const model::Param& param : op.params) account.params.push_back(count_of(at, param));
    add_op(at, account);
  }
  add_kept(block, ops, account);
  return account;
}

// Adds the parameters of the loss beside its table.
PartAccount with_loss_params(PartAccount head, const model::OpAt& loss) {
  for (size_t i = 1; i < loss.op.params.size(); ++i) head.params.push_back(count_of(loss, loss.op.params[i]));
  return head;
}

void count_layers(const model::ModelGraph& graph, ModelAccount& account) {
  for (const model::BlockGraph& layer : graph.layer_kinds()) {
    for (size_t part = 0; part < account.parts_of_layer(); ++part) {
      account.parts.push_back(part <= layer.cuts.size() ? count(layer, layer.part(part), account.sums) : PartAccount());
    }
  }
  for (size_t block = 1; block + 1 < graph.blocks.size(); ++block) {
    account.kind_of_layer.push_back(graph.blocks[block] - 1);
  }
}

}  // namespace

ModelAccount account_of(const ModelSpec& spec, double picked) {
  return account_of(spec, model::graph_of(spec), picked);
}

ModelAccount account_of(const ModelSpec& spec, const model::ModelGraph& graph, double picked, TensorSums sums) {
  const model::BlockGraph &embedding = graph.kinds.front(), &head = graph.kinds.back();
  model::Extents of_token = model::extents_of(spec, 1, 1);
  of_token['j'] = picked;
  const std::span at_start(embedding.ops), at_end(head.ops);
  const model::OpAt loss{head, head.ops.back()};
  ModelAccount account{.spec = spec,
                       .of_token = of_token,
                       .flops_per_token = model::model_flops_per_token(graph, of_token),
                       .sums = sums,
                       .tokens = count(embedding, at_start.first(1), sums),
                       .positions = count(embedding, at_start.subspan(1), sums)};
  count_layers(graph, account);
  account.last_norm = with_loss_params(count(head, at_end.first(at_end.size() - 1), sums), loss);
  account.table.params.push_back(count_of(loss, loss.op.params[0]));
  account.loss_rows = loss.rows();
  account.of_logits = {model::values_with_gradient(head)[loss.op.in[0]], model::is_trained(loss.op.params[0])};
  if (model::keeps_input(head, loss.op)) add(loss, model::Terms(loss.in()), account.loss_input);
  account.picks_rows = std::ranges::count(head.ops, model::OpKind::PickRows, &model::Op::kind) > 0;
  account.ends_in_norm = is_norm(graph.kinds[1].ops.back());
  return account;
}

RankExtents rank_extents(const ModelAccount& account, const SharingRanks& ranks) {
  RankExtents rank{account.of_token, {}};
  rank.all['b'] = ranks.sequences;
  for (const char letter : {'t', 'j'}) rank.all[letter] *= ranks.tokens / ranks.sequences;
  rank.all['r'] *= ranks.tokens;
  rank.all['v'] = static_cast<double>(model::padded_vocab(account.spec, ranks.tensor));
  rank.all['e'] /= ranks.expert;
  rank.all.split_over(ranks.tensor);
  rank.between = rank.all;
  if (ranks.between == Sequence::Whole) return rank;
  for (const char letter : {'t', 'r'}) rank.between[letter] /= ranks.tensor;
  return rank;
}

}  // namespace braid::layout
