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

constexpr OpRow kRows[] = {
    {OpKind::Lookup, none},
    {OpKind::Positions, none},
    {OpKind::Dropout, none},
    {OpKind::LayerNorm, none},
    {OpKind::RmsNorm, none},
    {OpKind::HeadNorm, none},
    {OpKind::Linear, product_flops},
    {OpKind::Bias, none},
    {OpKind::Rotary, none},
    {OpKind::Attention, attention_flops},
    {OpKind::Gelu, none},
    {OpKind::SwiGlu, none},
    {OpKind::Residual, none},
    {OpKind::Route, none},
    {OpKind::Dispatch, none},
    {OpKind::Combine, none},
    {OpKind::Loss, product_flops},
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
