// Names in a graph, its checks and its text.
#include "braid/model/graph.h"

#include <algorithm>
#include <set>

#include "braid/base/text.h"
#include "braid/model/op_table.h"

namespace braid::model {
namespace {

using braid::operator<<;

// Returns true if the dims of the op's operands fit together.
bool fits(const BlockGraph& block, const Op& op) {
  const Dims &in = block.values[op.in[0]], &out = block.values[op.out];
  switch (op.kind) {
    case OpKind::Residual:
      return op.in.size() == 2 && block.values[op.in[1]] == in && out == in;
    case OpKind::Linear: {
      const Dims& weight = op.params.at(0).dims;
      return weight.back() == in.back() && out.back() == weight[weight.size() - 2];
    }
    case OpKind::LayerNorm:
    case OpKind::RmsNorm:
    case OpKind::Bias:
      return out == in && std::ranges::all_of(op.params, [&](const Param& p) { return p.dims.back() == in.back(); });
    case OpKind::SwiGlu:
      return in.back().segments.size() == 2 && out.back().segments[0] == in.back().segments[0];
    case OpKind::Attention:
      return in.back().segments.size() == 3 && out.back().segments[0] == in.back().segments[0];
    case OpKind::Dropout:
    case OpKind::HeadNorm:
    case OpKind::Rotary:
    case OpKind::Gelu:
      return out == in;
    default:
      return true;
  }
}

std::ptrdiff_t readers_of(const BlockGraph& block, int value) {
  return std::ranges::count_if(block.ops, [&](const Op& op) { return std::ranges::count(op.in, value) > 0; });
}

// Returns the values that are made before op `cut` and read from it on.
std::set<int> values_across(const BlockGraph& block, int cut) {
  std::set<int> made{0}, across;
  for (int number = 0; number < static_cast<int>(block.ops.size()); ++number) {
    const Op& op = block.ops[number];
    if (number < cut) made.insert(op.out);
    if (number < cut) continue;
    std::ranges::copy_if(op.in, std::inserter(across, across.end()), [&](int value) { return made.contains(value); });
  }
  return across;
}

}  // namespace

std::span<const Op> BlockGraph::part(size_t number) const {
  const int begin = number == 0 ? 0 : cuts.at(number - 1);
  const int end = number < cuts.size() ? cuts[number] : static_cast<int>(ops.size());
  return std::span(ops).subspan(begin, end - begin);
}

std::string rule_text(const BlockGraph& block, const Op& op) {
  std::vector<std::string> operands;
  for (const int value : op.in) operands.push_back(text_of(block.values[value]));
  for (const Param& param : op.params) operands.push_back(text_of(param.dims));
  return cat(joined(operands, ","), "->", text_of(block.values[op.out]));
}

std::string block_name(const ModelGraph& graph, size_t block) {
  if (block == 0) return "embedding";
  return block + 1 == graph.blocks.size() ? "head" : cat("blocks.", block - 1);
}

std::string part_name(const BlockGraph& block, size_t part) {
  const std::span<const Op> ops = block.part(part);
  const auto first = std::ranges::find(ops, OpKind::Linear, &Op::kind);
  if (first == ops.end()) return "";
  const std::string& name = first->params.at(0).name;
  return name.substr(0, name.find('.'));
}

std::string param_name(const ModelGraph& graph, size_t block, const Param& param) {
  const bool is_layer = block > 0 && block + 1 < graph.blocks.size();
  return is_layer ? cat(block_name(graph, block), ".", param.name) : param.name;
}

std::vector<std::string> problems_of(const BlockGraph& block) {
  std::vector<std::string> problems;
  std::set<int> made{0};
  std::set<std::string> names;
  for (const Op& op : block.ops) {
    const std::string text = cat(op.kind, " ", rule_text(block, op));
    if (!std::ranges::all_of(op.in, [&](int value) { return made.contains(value); })) {
      problems.push_back(text + " reads a value that is not made yet");
    }
    if (op.row->overwrites == OverwritesInput::Yes && readers_of(block, op.in[0]) > 1) {
      problems.push_back(text + " overwrites a value that another op reads");
    }
    if (!fits(block, op)) problems.push_back(text + " has operands that do not fit");
    if (!made.insert(op.out).second) problems.push_back(text + " makes a value that is there already");
    for (const Param& param : op.params) {
      if (!names.insert(param.name).second) problems.push_back(param.name + " is there twice");
    }
  }
  for (const int cut : block.cuts) {
    const size_t across = values_across(block, cut).size();
    if (across != 1) problems.push_back(cat("the cut before op ", cut, " has ", across, " values across it"));
  }
  return problems;
}

std::string text_of(const BlockGraph& block) {
  std::string text;
  for (int number = 0; number < static_cast<int>(block.ops.size()); ++number) {
    const Op& op = block.ops[number];
    if (std::ranges::count(block.cuts, number) > 0) text += "cut\n";
    text += cat(op.kind, " ", rule_text(block, op));
    for (const Param& param : op.params) text += " " + param.name;
    text += "\n";
  }
  return text;
}

}  // namespace braid::model
