// Names in a graph, its checks and its text.
#include "braid/model/graph.h"

#include <algorithm>
#include <set>

#include "braid/base/text.h"
#include "braid/model/op_table.h"

namespace braid::model {
namespace {

using braid::operator<<;

// Returns true if the dims are queries, keys and values in one buffer.
bool are_heads(const Dims& dims) { return !dims.empty() && dims.back() == dims_of("[kmd|kd|kd]")[0]; }

// Returns true if all dims but the last are equal.
bool have_same_rows(const Dims& a, const Dims& b) {
  return !a.empty() && a.size() == b.size() && std::equal(a.begin(), a.end() - 1, b.begin());
}

// Returns true if the dims of the op's operands fit together.
bool fits(const BlockGraph& block, const Op& op) {
  const Dims &in = block.values[op.in[0]], &out = block.values[op.out];
  switch (op.kind) {
    case OpKind::Residual:
      return op.in.size() == 2 && block.values[op.in[1]] == in && out == in;
    case OpKind::Linear: {
      const Dims& weight = op.params.at(0).dims;
      return have_same_rows(in, out) && weight.back() == in.back() && out.back() == weight[weight.size() - 2];
    }
    case OpKind::LayerNorm:
    case OpKind::RmsNorm:
    case OpKind::Bias:
      return out == in && std::ranges::all_of(op.params, [&](const Param& p) { return p.dims.back() == in.back(); });
    case OpKind::SwiGlu:
    case OpKind::GeGlu: {
      const auto& halves = in.back().segments;
      return have_same_rows(in, out) && halves.size() == 2 && halves[0] == halves[1] && out.back() == Dim{{halves[0]}};
    }
    case OpKind::Attention:
      return have_same_rows(in, out) && are_heads(in) && out.back() == dims_of("(kmd)")[0];
    case OpKind::HeadNorm:
    case OpKind::Rotary:
      return out == in && are_heads(in);
    case OpKind::Dropout:
    case OpKind::Gelu:
    case OpKind::GeluErf:
      return out == in;
    case OpKind::Positions:
    case OpKind::TokenTypes:
      return out == in && in.back() == op.params.at(0).dims.back();
    case OpKind::PickRows:
      return in == dims_of("btc") && out == dims_of("bjc");
    case OpKind::Loss:
      return !in.empty() && in.back() == op.params.at(0).dims.back();
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

std::vector<size_t> ModelGraph::first_blocks() const {
  std::vector<size_t> first;
  for (size_t block = 0; block < blocks.size(); ++block) {
    if (std::ranges::find(blocks, blocks[block]) - blocks.begin() == static_cast<int64_t>(block))
      first.push_back(block);
  }
  return first;
}

std::string block_name(const ModelGraph& graph, size_t block) {
  if (block == 0) return "embedding";
  return block + 1 == graph.blocks.size() ? "head" : cat("blocks.", block - 1);
}

std::string op_name(const ModelGraph& graph, size_t block, const Op& op) {
  const std::string name = cat(block_name(graph, block), " ", op.kind);
  if (!op.params.empty()) {
    const std::string& param = op.params.front().name;
    return cat(name, " ", param.substr(0, param.rfind('.')));
  }
  const std::vector<Op>& ops = graph.block(block).ops;
  const auto is_alike = [&](const Op& other) { return other.kind == op.kind; };
  if (std::ranges::count_if(ops, is_alike) == 1) return name;
  return cat(name, " ", 1 + std::count_if(ops.data(), &op, is_alike));
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

bool is_overwritten(const BlockGraph& block, int value) {
  return std::ranges::any_of(block.ops, [&](const Op& op) {
    if (op.in[0] != value) return false;
    return op.row->overwrites == OverwritesInput::Yes || (op.kind == OpKind::Dropout && is_overwritten(block, op.out));
  });
}

namespace {

// Returns what is wrong with the value that the op reads first and with the one that it makes.
std::vector<std::string> problems_of_memory(const BlockGraph& block, const Op& op) {
  std::vector<std::string> problems;
  const auto number = &op - block.ops.data();
  const Op* const before = number > 0 ? &block.ops[number - 1] : nullptr;
  const auto maker = std::ranges::find(block.ops, op.in[0], &Op::out);
  const bool overwrites = op.row->overwrites == OverwritesInput::Yes;
  if (overwrites && op.in[0] == 0) problems.emplace_back("overwrites the input of the block");
  const bool passes_on = op.kind == OpKind::Dropout && is_overwritten(block, op.out);
  if ((overwrites || passes_on) && readers_of(block, op.in[0]) > 1) {
    problems.emplace_back(overwrites ? "overwrites a value that another op reads"
                                     : "passes a value that another op reads to one that overwrites it");
  }
  if (overwrites && maker != block.ops.end() && maker->kind == OpKind::Attention) {
    problems.emplace_back("overwrites a value that attention keeps");
  }
  const bool is_gelu = op.kind == OpKind::Gelu || op.kind == OpKind::GeluErf;
  if (is_gelu && !(before && before->kind == OpKind::Bias && before->out == op.in[0])) {
    problems.emplace_back("does not follow a bias");
  }
  if (op.kind == OpKind::Opaque && !op.function) problems.emplace_back("has no function");
  if (number + 1 < std::ssize(block.ops) && readers_of(block, op.out) == 0) {
    problems.emplace_back("makes a value that no op reads");
  }
  return problems;
}

bool has_params(std::span<const Op> ops) {
  return std::ranges::any_of(ops, [](const Op& op) { return !op.params.empty(); });
}

std::vector<std::string> problems_of_cut(const BlockGraph& block, int cut) {
  const std::string before = cat("the cut before op ", cut);
  const std::set<int> across = values_across(block, cut);
  if (across.size() != 1) return {cat(before, " has ", across.size(), " values across it")};
  std::vector<std::string> problems;
  const std::span<const Op> ops(block.ops);
  if (!has_params(ops.first(cut)) || !has_params(ops.subspan(cut))) {
    problems.push_back(before + " has no parameters on one side");
  }
  const int value = *across.begin();
  if (block.values[value] != block.values[0]) {
    problems.push_back(cat(before, " is at ", text_of(block.values[value]), ", not ", text_of(block.values[0])));
  }
  if (is_overwritten(block, value)) problems.push_back(before + " is at a value that an op overwrites");
  return problems;
}

}  // namespace

std::vector<std::string> problems_of(const BlockGraph& block) {
  std::vector<std::string> problems;
  std::set<int> made{0};
  std::set<std::string> names;
  for (const Op& op : block.ops) {
    const std::string text = cat(op.kind, " ", rule_text(block, op));
    if (!std::ranges::all_of(op.in, [&](int value) { return made.contains(value); })) {
      problems.push_back(text + " reads a value that is not made yet");
    }
    for (std::string& problem : problems_of_memory(block, op)) problems.push_back(cat(text, " ", problem));
    if (!fits(block, op)) problems.push_back(text + " has operands that do not fit");
    if (!made.insert(op.out).second) problems.push_back(text + " makes a value that is there already");
    for (const Param& param : op.params) {
      if (!names.insert(param.name).second) problems.push_back(param.name + " is there twice");
    }
  }
  for (const int cut : block.cuts) {
    for (std::string& problem : problems_of_cut(block, cut)) problems.push_back(std::move(problem));
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
