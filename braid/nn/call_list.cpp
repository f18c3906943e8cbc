// Places the sums and the gathers.
#include "braid/nn/call_list.h"

#include <utility>

#include "braid/layout/tensor_sums.h"
#include "braid/nn/regions.h"
#include "braid/nn/token_regions.h"

namespace braid::nn {

CallList::CallList(const model::BlockGraph& block, const RankContext& rank)
    : block_(block),
      tensor_(rank.tensor),
      splits_(tensor_.size() > 1),
      splits_tokens_(splits_ && rank.tokens == layout::Sequence::Split),
      summed_(layout::summed_values(block)),
      num_values_(static_cast<int>(block.values.size())) {}

int CallList::input_of(const model::Op& op) {
  const int x = op.in[0];
  const bool sums = splits_ && layout::sums_input_gradient(block_, op);
  const bool gathers = splits_tokens_ && layout::gathers_tokens(block_, op);
  if (!sums && !gathers) return x;
  const auto [copy, is_new] = copies_.try_emplace({x, sums}, num_values_);
  if (!is_new) return copy->second;
  ++num_values_;
  const auto run = [=, y = copy->second, tensor = &tensor_](Frame& frame, const Microbatch&) {
    if (!gathers) frame[y] = {copy_to(frame[x].value, *tensor), frame[x].again};
    if (gathers) frame[y] = sums ? gather_tokens(frame[x], *tensor) : all_tokens(frame[x].value, *tensor);
  };
  calls_.push_back({run, {x, copy->second}, op_});
  return copy->second;
}

void CallList::add(std::vector<int> uses, int out, Call::Run run) {
  calls_.push_back({std::move(run), std::move(uses), op_});
  if (!sums(out)) return;
  const bool scatters = splits_tokens_ && layout::splits_tokens(block_.values[out]);
  const auto sum = [out, scatters, tensor = &tensor_](Frame& frame, const Microbatch&) {
    frame[out] = scatters ? scatter_sum(frame[out].value, *tensor) : reduce_from_(frame[out].value, *tensor);
  };
  calls_.push_back({sum, {out}, op_});
}

std::unique_ptr<Block> CallList::block(int input, int output) && {
  return std::make_unique<GraphBlock>(std::move(calls_), GraphBlock::Values{num_values_, input, output});
}

}  // namespace braid::nn
