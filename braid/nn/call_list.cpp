// Places the sums.
#include "braid/nn/call_list.h"

#include <utility>

#include "braid/layout/tensor_sums.h"
#include "braid/nn/regions.h"

namespace braid::nn {

CallList::CallList(const model::BlockGraph& block, Communicator& tensor)
    : block_(block),
      tensor_(tensor),
      splits_(tensor.size() > 1),
      summed_(layout::summed_values(block)),
      num_values_(static_cast<int>(block.values.size())) {}

int CallList::input_of(const model::Op& op) {
  const int x = op.in[0];
  if (!splits_ || !layout::sums_input_gradient(block_, op)) return x;
  const auto [copy, is_new] = copies_.try_emplace(x, num_values_);
  if (!is_new) return copy->second;
  ++num_values_;
  const auto run = [x, y = copy->second, tensor = &tensor_](Frame& frame, const Microbatch&) {
    frame[y] = {copy_to(frame[x].value, *tensor), frame[x].again};
  };
  calls_.push_back({run, {x, copy->second}});
  return copy->second;
}

void CallList::add(std::vector<int> uses, int out, Call::Run run) {
  calls_.push_back({std::move(run), std::move(uses)});
  if (!sums(out)) return;
  const auto sum = [out, tensor = &tensor_](Frame& frame, const Microbatch&) {
    frame[out] = reduce_from_(frame[out].value, *tensor);
  };
  calls_.push_back({sum, {out}});
}

std::unique_ptr<Block> CallList::block(int input, int output) && {
  return std::make_unique<GraphBlock>(std::move(calls_), GraphBlock::Values{num_values_, input, output});
}

}  // namespace braid::nn
