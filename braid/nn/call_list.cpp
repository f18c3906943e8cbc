// Places the sums and the gathers.
#include "braid/nn/call_list.h"

#include <ATen/OpMathType.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "braid/layout/tensor_sums.h"
#include "braid/nn/kept.h"
#include "braid/nn/regions.h"
#include "braid/nn/token_regions.h"

namespace braid::nn {
namespace {

layout::TensorSums sums_of(const RankContext& rank) {
  return rank.weight_grads.parts() ? layout::TensorSums::ByValue : layout::TensorSums::Joined;
}

}  // namespace

CallList::CallList(const model::BlockGraph& block, int number, const RankContext& rank, at::ScalarType type)
    : block_(block),
      number_(number),
      observer_(rank.observer),
      tensor_(rank.tensor),
      weight_grads_(rank.weight_grads),
      splits_(tensor_.size() > 1),
      splits_tokens_(splits_ && rank.tokens == layout::Sequence::Split),
      has_parts_(rank.weight_grads.parts()),
      type_(type),
      summed_(layout::summed_values(block, sums_of(rank))),
      partial_(layout::partial_values(block, sums_of(rank))),
      num_values_(static_cast<int>(block.values.size())) {}

void CallList::begin(int input) {
  input_ = input;
  made_ = {input};
  observe({ValueKind::Input, number_, input}, input, nullptr);
}

bool CallList::sums_input_gradient(const model::Op& op) const {
  return splits_ && layout::sums_input_gradient(block_, op);
}

int CallList::input_of(const model::Op& op) {
  const int x = op.in[0];
  const bool sums = sums_input_gradient(op);
  const bool gathers = splits_tokens_ && layout::gathers_tokens(block_, op);
  if (!sums && !gathers) return x;
  if (has_parts_) copies_.erase({x, sums});
  const auto [copy, is_new] = copies_.try_emplace({x, sums}, num_values_);
  if (!is_new) return copy->second;
  ++num_values_;
  const auto run = [=, y = copy->second, has_parts = has_parts_, tensor = &tensor_, queue = &weight_grads_](
                       Frame& frame, const Microbatch&) {
    const Activation& from = frame[x];
    const at::ScalarType type = from.value.scalar_type();
    const at::ScalarType sum = has_parts && c10::GradMode::is_enabled() ? at::toOpMathType(type) : type;
    if (gathers) {
      frame[y] = sums ? gather_tokens(from, *tensor, sum, queue) : all_tokens(from.value, *tensor);
      return;
    }
    Activation::Again again = from.again;
    if (sum != type && !again) again = [narrow = SavedTensor(from.value)] { return narrow.tensor(); };
    frame[y] = {copy_to(from.value, *tensor, sum, queue), std::move(again)};
  };
  calls_.push_back({run, {x, copy->second}, op_});
  return copy->second;
}

void CallList::add(std::vector<int> uses, int out, Call::Run run) {
  calls_.push_back({std::move(run), uses, op_});
  if (splits_ && sums(out)) {
    const bool scatters = splits_tokens_ && layout::splits_tokens(block_.values[out]);
    const auto sum = [out, scatters, type = type_, tensor = &tensor_](Frame& frame, const Microbatch&) {
      const at::Tensor& part = frame[out].value;
      frame[out] = scatters ? scatter_sum(part, *tensor, type) : reduce_from_(part, *tensor).to(type);
    };
    calls_.push_back({sum, {out}, op_});
  }
  observe_new(uses);
}

// A call makes those of its values that did not exist before it. Parts of a sum are not observed.
void CallList::observe_new(const std::vector<int>& uses) {
  std::vector<int> fresh;
  for (const int value : uses) {
    if (value < std::ssize(block_.values) && made_.insert(value).second) fresh.push_back(value);
  }
  for (const int value : fresh) {
    if (splits_ && partial_[value]) continue;
    const bool alone = value == fresh.back();
    observe({ValueKind::Output, number_, value, alone ? ValueGradient::Whole : ValueGradient::FusedWithNorm}, value,
            nullptr);
  }
}

void CallList::observe(const MadeValue& place, int x,
                       std::function<at::Tensor(const at::Tensor&, const Microbatch&)> make) {
  if (!observer_) return;
  const auto run = [=, observer = observer_, make = std::move(make)](Frame& frame, const Microbatch& microbatch) {
    if (!frame[x].value.defined()) return;
    if (!make) return observer->made(place, microbatch, frame[x].value);
    const c10::AutoGradMode no_grad(false);
    at::Tensor made = make(frame[x].value.detach(), microbatch);
    observer->made(place, microbatch, made);
  };
  calls_.push_back({run, {x}, op_});
}

std::unique_ptr<Block> CallList::block(int output) && {
  return std::make_unique<GraphBlock>(std::move(calls_), GraphBlock::Values{num_values_, input_, output});
}

}  // namespace braid::nn
