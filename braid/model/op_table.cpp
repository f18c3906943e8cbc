// The rows of the op table.
#include "braid/model/op_table.h"

#include <algorithm>
#include <iterator>

#include "braid/base/text.h"

namespace braid::model {
namespace {

Terms none(const OpAt&) { return {}; }

Terms product_flops(const OpAt& at) { return 2 * at.rows() * at.weights(); }

// Leaves out the bias of logits, as other counts do.
Terms logit_flops(const OpAt& at) { return 2 * at.rows() * Terms(at.op.params[0].dims); }

// Two products: scores of queries with the keys that they see, and the sum of values by these.
Terms attention_flops(const OpAt& at) { return 4 * at.op.tokens_seen * Terms(at.out()); }

Traffic no_traffic(const OpAt&) { return {}; }

// So many times the elements of the output.
template <int Forward, int Backward>
Traffic of_output(const OpAt& at) {
  const Terms out(at.out());
  return {Forward * out, Backward * out};
}

// The elements of queries and keys, without those of values.
Terms queries_and_keys(const OpAt& at) {
  const auto& segments = at.out().back().segments;
  return at.rows() * Terms(Dims{{{segments[0], segments[1]}}});
}

Traffic rotary_traffic(const OpAt& at) { return {2 * queries_and_keys(at), 2 * queries_and_keys(at)}; }

Traffic head_norm_traffic(const OpAt& at) { return {2 * queries_and_keys(at), 3 * queries_and_keys(at)}; }

// A number for each head of queries and keys.
Terms of_normed_head(const OpAt& at) { return queries_and_keys(at).without('d'); }

// Copies each token to its experts. Backward sums what they return.
Traffic dispatch_traffic(const OpAt& at) {
  return {2 * Terms(at.out()), 2 * Terms(at.out()) + Terms(at.block.values[at.op.in[1]])};
}

Traffic combine_traffic(const OpAt& at) {
  const Terms moved = Terms(at.in()) + Terms(at.out());
  return {moved, moved};
}

// Backward clears the gradient of all rows.
Traffic picked_traffic(const OpAt& at) { return {2 * Terms(at.out()), 2 * Terms(at.out()) + Terms(at.in())}; }

// So many numbers for each row of the input.
template <int Count>
Terms of_row(const OpAt& at) {
  return Count * at.rows();
}

Terms of_head(const OpAt& at) { return Terms(at.out()).without('d'); }

// With a window the output is put together from those of runs of tokens. Their outputs and their mask are kept too.
Terms copies_of_runs(const OpAt& at) { return at.op.mask > 0 ? Terms(at.out()) + at.op.mask * Terms(Dims()) : Terms(); }

Terms of_element(const OpAt& at) { return Terms(at.out()); }

constexpr auto kKeeps = KeepsInput::Yes, kDrops = KeepsInput::No;
constexpr auto kOnce = Recomputed::No, kAgain = Recomputed::Apply;

std::string no_letter(const OpAt&) { return ""; }
std::string all_letters(const OpAt& at) { return text_of(at.out()); }
std::string last_letters(const OpAt& at) { return text_of({at.in().back()}); }
std::string features_of_head(const OpAt&) { return "d"; }
std::string head_and_tokens(const OpAt&) { return "dt"; }
std::string places(const OpAt&) { return "tp"; }
std::string places_of_rows(const OpAt&) { return "tj"; }

constexpr auto kOverwrites = OverwritesInput::Yes, kLeaves = OverwritesInput::No;

constexpr OpRow kRows[] = {
    {OpKind::Lookup, none, no_traffic, kDrops, none, none, kOnce, kLeaves, no_letter},
    {OpKind::Positions, none, no_traffic, kDrops, none, none, kOnce, kOverwrites, places},
    {OpKind::TokenTypes, none, no_traffic, kDrops, none, none, kOnce, kOverwrites, no_letter},
    {OpKind::Dropout, none, of_output<0, 2>, kDrops, none, none, kOnce, kLeaves, all_letters},
    {OpKind::LayerNorm, none, of_output<2, 3>, kKeeps, none, of_row<2>, kAgain, kLeaves, last_letters},
    {OpKind::RmsNorm, none, of_output<2, 3>, kKeeps, none, of_row<1>, kAgain, kLeaves, last_letters},
    {OpKind::HeadNorm, none, head_norm_traffic, kDrops, queries_and_keys, of_normed_head, kOnce, kOverwrites,
     features_of_head},
    {OpKind::Linear, product_flops, no_traffic, kKeeps, none, none, kOnce, kLeaves, no_letter},
    {OpKind::Bias, none, of_output<0, 1>, kDrops, none, none, kOnce, kOverwrites, no_letter},
    {OpKind::Rotary, none, rotary_traffic, kDrops, none, none, kOnce, kOverwrites, head_and_tokens},
    {OpKind::Attention, attention_flops, of_output<2, 2>, kKeeps, copies_of_runs, of_head, Recomputed::Run, kLeaves,
     head_and_tokens},
    {OpKind::Gelu, none, of_output<2, 3>, kKeeps, none, none, kAgain, kOverwrites, no_letter},
    {OpKind::GeluErf, none, of_output<2, 3>, kKeeps, none, none, kAgain, kOverwrites, no_letter},
    {OpKind::SwiGlu, none, of_output<3, 5>, kKeeps, none, none, kAgain, kOverwrites, no_letter},
    {OpKind::GeGlu, none, of_output<3, 5>, kKeeps, none, none, kAgain, kOverwrites, no_letter},
    {OpKind::Residual, none, of_output<3, 3>, kDrops, none, none, kOnce, kLeaves, no_letter},
    {OpKind::Route, none, of_output<2, 3>, kDrops, none, of_element, kOnce, kLeaves, all_letters},
    {OpKind::Dispatch, none, dispatch_traffic, kDrops, none, none, kOnce, kLeaves, all_letters},
    {OpKind::Combine, none, combine_traffic, kKeeps, none, none, kOnce, kLeaves, all_letters},
    {OpKind::Opaque, none, of_output<2, 3>, kKeeps, none, none, kOnce, kLeaves, no_letter},
    {OpKind::PickRows, none, picked_traffic, kDrops, none, none, kOnce, kLeaves, places_of_rows},
    {OpKind::Loss, logit_flops, no_traffic, kKeeps, none, none, kOnce, kLeaves, last_letters},
};
static_assert(std::size(kRows) == words(OpKind()).size());
static_assert(std::ranges::is_sorted(kRows, {}, &OpRow::kind));

}  // namespace

Terms OpAt::weights() const {
  Terms sum;
  for (const Param& param : op.params) sum += Terms(param.dims);
  return is_among_experts() ? sum.without('e') : sum;
}

std::vector<std::string> problems_of_split(const BlockGraph& block, std::string_view split_letters) {
  std::vector<std::string> problems;
  for (const Op& op : block.ops) {
    const std::string whole = op.row->whole({block, op}), used = rule_text(block, op);
    for (const char letter : split_letters) {
      const bool is_whole = whole.find(letter) != std::string::npos && used.find(letter) != std::string::npos;
      if (!is_whole) continue;
      problems.push_back(cat(op.kind, " ", used, " needs ", std::string(1, letter), " whole"));
    }
  }
  return problems;
}

const OpRow& row_of(OpKind kind) { return kRows[static_cast<size_t>(kind)]; }

Terms forward_flops(const BlockGraph& block) {
  Terms sum;
  for (const Op& op : block.ops) sum += op.row->flops({block, op});
  return sum;
}

}  // namespace braid::model
