// Marks parameters block by block, and follows gradients op by op.
#include "braid/model/trained.h"

#include <algorithm>

#include "braid/model/op_table.h"

namespace braid::model {
namespace {

// Returns the number of `block` among the kinds from `first` on, to which it is added if it is new.
int kind_of(const BlockGraph& block, std::vector<BlockGraph>& kinds, size_t first) {
  const auto found = std::find(kinds.begin() + static_cast<std::ptrdiff_t>(first), kinds.end(), block);
  const auto number = found - kinds.begin();
  if (found == kinds.end()) kinds.push_back(block);
  return static_cast<int>(number);
}

}  // namespace

bool is_trained(const Param& param) { return param.trained == Trained::Yes; }
bool has_trained(const Op& op) { return std::ranges::any_of(op.params, is_trained); }
bool has_trained(std::span<const Op> ops) {
  return std::ranges::any_of(ops, [](const Op& op) { return has_trained(op); });
}

ModelGraph with_frozen(const ModelGraph& graph, const std::function<bool(const std::string& name)>& is_frozen) {
  ModelGraph marked;
  bool trained_before = false;
  for (size_t number = 0; number < graph.blocks.size(); ++number) {
    BlockGraph block = graph.block(number);
    block.of_input = trained_before ? Gradient::Needed : Gradient::Unneeded;
    for (Op& op : block.ops) {
      for (Param& param : op.params) {
        if (is_frozen(param_name(graph, number, param))) param.trained = Trained::No;
      }
    }
    trained_before = trained_before || has_trained(block.ops);
    const bool is_layer = number > 0 && number + 1 < graph.blocks.size();
    marked.blocks.push_back(kind_of(block, marked.kinds, is_layer ? 1 : marked.kinds.size()));
  }
  return marked;
}

std::vector<bool> values_with_gradient(const BlockGraph& block) {
  std::vector<bool> has(block.values.size());
  has[0] = block.of_input == Gradient::Needed;
  for (const Op& op : block.ops) {
    const auto of_value = [&](int value) { return has[static_cast<size_t>(value)]; };
    has[static_cast<size_t>(op.out)] = has_trained(op) || std::ranges::any_of(op.in, of_value);
  }
  return has;
}

bool keeps_input(const BlockGraph& block, const Op& op) {
  if (op.row->keeps == KeepsInput::No) return false;
  if (op.kind != OpKind::Linear && op.kind != OpKind::Loss) return true;
  const auto producer = std::ranges::find(block.ops, op.in[0], &Op::out);
  const bool of_attention = producer != block.ops.end() && producer->kind == OpKind::Attention;
  return of_attention || is_trained(op.params[0]);
}

}  // namespace braid::model
