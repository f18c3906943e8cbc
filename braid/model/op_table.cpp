// The rows of the op table.
#include "braid/model/op_table.h"

#include <algorithm>
#include <iterator>

namespace braid::model {
namespace {

Terms none(const OpAt&) { return {}; }

Terms product_flops(const OpAt& at) { return 2 * at.rows() * at.weights(); }

// Two products: scores of queries with the keys that they see, and the sum of values by these.
Terms attention_flops(const OpAt& at) { return 4 * at.op.tokens_seen * Terms(at.out()); }

Traffic no_traffic(const OpAt&) { return {}; }

// So many times the elements of the output.
template <int Forward, int Backward>
Traffic of_output(const OpAt& at) {
  const Terms out(at.out());
  return {Forward * out, Backward * out};
}

// Reads and writes queries and keys, and leaves values.
Traffic rotary_traffic(const OpAt& at) {
  const auto& segments = at.out().back().segments;
  const Terms turned = 2 * at.rows() * Terms(Dims{{{segments[0], segments[1]}}});
  return {turned, turned};
}

// Copies each token to its experts. Backward sums what they return.
Traffic dispatch_traffic(const OpAt& at) {
  return {2 * Terms(at.out()), 2 * Terms(at.out()) + Terms(at.block.values[at.op.in[1]])};
}

Traffic combine_traffic(const OpAt& at) {
  const Terms moved = Terms(at.in()) + Terms(at.out());
  return {moved, moved};
}

constexpr auto kNo = Recomputed::No, kYes = Recomputed::Yes;

constexpr OpRow kRows[] = {
    {OpKind::Lookup, none, no_traffic, kNo},          {OpKind::Positions, none, no_traffic, kNo},
    {OpKind::Dropout, none, of_output<0, 2>, kNo},    {OpKind::LayerNorm, none, of_output<2, 3>, kYes},
    {OpKind::RmsNorm, none, of_output<2, 3>, kYes},   {OpKind::HeadNorm, none, no_traffic, kNo},
    {OpKind::Linear, product_flops, no_traffic, kNo}, {OpKind::Bias, none, of_output<0, 1>, kNo},
    {OpKind::Rotary, none, rotary_traffic, kNo},      {OpKind::Attention, attention_flops, of_output<2, 2>, kYes},
    {OpKind::Gelu, none, of_output<2, 3>, kYes},      {OpKind::SwiGlu, none, of_output<3, 5>, kYes},
    {OpKind::Residual, none, of_output<3, 3>, kNo},   {OpKind::Route, none, of_output<2, 3>, kNo},
    {OpKind::Dispatch, none, dispatch_traffic, kNo},  {OpKind::Combine, none, combine_traffic, kNo},
    {OpKind::Loss, product_flops, no_traffic, kNo},
};
static_assert(std::size(kRows) == words(OpKind()).size());
static_assert(std::ranges::is_sorted(kRows, {}, &OpRow::kind));

}  // namespace

Terms OpAt::weights() const {
  Terms sum;
  for (const Param& param : op.params) sum += Terms(param.dims);
  return is_among_experts() ? sum.without('e') : sum;
}

const OpRow& row_of(OpKind kind) { return kRows[static_cast<size_t>(kind)]; }

Terms forward_flops(const BlockGraph& block) {
  Terms sum;
  for (const Op& op : block.ops) sum += row_of(op.kind).flops({block, op});
  return sum;
}

}  // namespace braid::model
