// The rule of tensors that lack a letter.
#include "braid/layout/tensor_sums.h"

#include <algorithm>
#include <string_view>

namespace braid::layout {
namespace {

using model::BlockGraph;
using model::Op;
using model::OpKind;

bool lacks(const model::Dims& dims, const std::set<char>& letters) {
  return !std::ranges::includes(split_letters(dims), letters);
}

// Returns true if the op makes parts of a sum out of whole tensors. The loss sums inside.
bool makes_parts(const BlockGraph& block, const Op& op) {
  const model::Dims& out = block.values[op.out];
  return !out.empty() && lacks(out, split_letters(block, op));
}

// Returns, for each value, true unless residuals of its part of the block alone read it.
std::vector<bool> read_whole(const BlockGraph& block) {
  const auto part_of = [&](int op) { return std::ranges::count_if(block.cuts, [&](int cut) { return cut <= op; }); };
  std::vector<bool> whole(block.values.size(), true);
  for (int maker = 0; maker < static_cast<int>(block.ops.size()); ++maker) {
    bool is_added = false, is_read = false;
    for (int reader = maker + 1; reader < static_cast<int>(block.ops.size()); ++reader) {
      const Op& op = block.ops[reader];
      if (std::ranges::count(op.in, block.ops[maker].out) == 0) continue;
      const bool adds = op.kind == OpKind::Residual && part_of(reader) == part_of(maker);
      (adds ? is_added : is_read) = true;
    }
    whole[block.ops[maker].out] = is_read || !is_added;
  }
  return whole;
}

// Values that are summed after they are made, and values of which ranks make parts.
struct JoinedSums {
  std::vector<bool> summed, parts;
};

JoinedSums joined_sums(const BlockGraph& block) {
  JoinedSums sums{read_whole(block), {}};
  std::vector<bool> before;
  while (sums.summed != before) {
    std::vector<bool>& summed = sums.summed;
    before = summed;
    sums.parts.assign(block.values.size(), false);
    for (const Op& op : block.ops) {
      const auto is_part = [&](int value) { return sums.parts[value] && !summed[value]; };
      const bool adds = op.kind == OpKind::Residual;
      sums.parts[op.out] = adds ? std::ranges::all_of(op.in, is_part) : makes_parts(block, op);
      if (!adds || sums.parts[op.out]) continue;
      for (const int value : op.in) summed[value] = summed[value] || is_part(value);
    }
    for (size_t value = 0; value < summed.size(); ++value) summed[value] = summed[value] && sums.parts[value];
  }
  return sums;
}

// Returns, for each value, true if its op makes parts of a sum out of whole tensors.
std::vector<bool> parts_made(const BlockGraph& block) {
  std::vector<bool> made(block.values.size(), false);
  for (const Op& op : block.ops) made[op.out] = op.kind != OpKind::Residual && makes_parts(block, op);
  return made;
}

}  // namespace

std::set<char> split_letters(const model::Dims& dims) {
  std::set<char> letters;
  for (const char letter : model::text_of(dims)) {
    if (model::kTensorLetters.find(letter) != std::string_view::npos) letters.insert(letter);
  }
  return letters;
}

std::set<char> split_letters(const BlockGraph& block, const Op& op) {
  std::set<char> letters = split_letters(block.values[op.out]);
  for (const int value : op.in) letters.merge(split_letters(block.values[value]));
  for (const model::Param& param : op.params) letters.merge(split_letters(param.dims));
  return letters;
}

bool sums_input_gradient(const BlockGraph& block, const Op& op) {
  return op.kind != OpKind::Lookup && lacks(block.values[op.in[0]], split_letters(block, op));
}

bool sums_gradient_of(const BlockGraph& block, const Op& op, const model::Param& param) {
  return lacks(param.dims, split_letters(block, op));
}

bool splits_tokens(const model::Dims& dims) {
  return split_letters(dims).empty() && model::text_of(dims).find('t') != std::string::npos;
}

bool splits_tokens(const BlockGraph& block, const Op& op) {
  return split_letters(block, op).empty() && splits_tokens(block.values[op.out]);
}

bool gathers_tokens(const BlockGraph& block, const Op& op) {
  const bool has_own_tokens = op.kind == OpKind::Lookup || op.kind == OpKind::Dispatch;
  return !has_own_tokens && splits_tokens(block.values[op.in[0]]) && !splits_tokens(block, op);
}

std::vector<bool> summed_values(const BlockGraph& block, TensorSums sums) {
  return sums == TensorSums::Joined ? joined_sums(block).summed : parts_made(block);
}

std::vector<bool> partial_values(const BlockGraph& block, TensorSums sums) {
  if (sums == TensorSums::ByValue) return std::vector<bool>(block.values.size(), false);
  const JoinedSums all = joined_sums(block);
  std::vector<bool> partial = all.parts;
  for (size_t value = 0; value < partial.size(); ++value) partial[value] = partial[value] && !all.summed[value];
  return partial;
}

bool sums_in_float(const Op& op, TensorSums sums) { return sums == TensorSums::ByValue && op.kind == OpKind::Linear; }

}  // namespace braid::layout
