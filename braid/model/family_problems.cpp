// The rules of a model's blocks.
#include "braid/model/family_problems.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "braid/base/text.h"
#include "braid/model/op_table.h"

namespace braid::model {
namespace {

using Texts = std::vector<std::string>;
using braid::operator<<;

std::string described(const BlockGraph& block, const Op& op) { return cat(op.kind, " ", rule_text(block, op)); }

void append(Texts& all, Texts more) { std::ranges::move(more, std::back_inserter(all)); }

// A block's place in the model.
struct Placed {
  std::string name;
  std::string_view input, output;  // dims
  size_t cuts;
  const BlockGraph& block;
};

// Lookups are in the embedding and the first is its first op. A loss is the last op of the head.
void add_misplaced(const Placed& place, Texts& problems) {
  const std::vector<Op>& ops = place.block.ops;
  const bool is_embedding = place.input == "bt", is_head = place.output.empty();
  for (const Op& op : ops) {
    const bool is_lost_loss = op.kind == OpKind::Loss && (!is_head || &op != &ops.back());
    if (is_lost_loss || (op.kind == OpKind::Lookup && !is_embedding)) {
      problems.push_back(cat(described(place.block, op), " is in the wrong place of the ", place.name));
    }
  }
  if (is_embedding && ops[0].kind != OpKind::Lookup) problems.push_back("the embedding does not begin with a lookup");
  if (is_head && ops.back().kind != OpKind::Loss) problems.push_back("the head does not end with a loss");
}

Texts problems_of_place(const Placed& place) {
  const BlockGraph& block = place.block;
  if (block.ops.empty()) return {cat("the ", place.name, " has no ops")};
  Texts problems = problems_of(block);
  const std::string input = text_of(block.values[0]), output = text_of(block.values[block.ops.back().out]);
  const bool is_head = place.output.empty();  // its loss is looked for below
  if (input != place.input || (output != place.output && !is_head)) {
    problems.push_back(cat("the ", place.name, " maps ", input, " to ", output, ", not ", place.input, " to ",
                           is_head ? "a loss" : place.output));
  }
  if (block.cuts.size() != place.cuts) {
    problems.push_back(cat("the ", place.name, " has ", block.cuts.size(), " cuts, not ", place.cuts));
  }
  add_misplaced(place, problems);
  return problems;
}

// Returns a sentence for each letter without an extent. Parameters have none for sequences and tokens.
Texts problems_of_letters(const ModelSpec& spec, const BlockGraph& block) {
  Extents of_values = extents_of(spec, 1, 1), of_params = of_values;
  if (spec.vocab == 0) of_values['v'] = of_params['v'] = 1;  // not known yet
  of_params['b'] = of_params['t'] = 0;
  Texts problems;
  const auto add = [&](const Op& op, const Dims& dims, const Extents& extents) {
    for (const Dim& dim : dims) {
      for (const std::string& segment : dim.segments) {
        const auto no_extent = [&](char letter) { return !(extents[letter] > 0); };
        if (!segment.empty() && std::ranges::none_of(segment, no_extent)) continue;
        problems.push_back(cat(described(block, op), " has a dim without an extent: ", text_of(dims)));
        return;
      }
    }
  };
  for (const Op& op : block.ops) {
    add(op, block.values[op.out], of_values);
    for (const Param& param : op.params) add(op, param.dims, of_params);
  }
  return problems;
}

// Both may have one parameter: the table that lookup and loss read.
Texts problems_of_names(const BlockGraph& embedding, const BlockGraph& head) {
  std::map<std::string, OpKind> first;
  for (const Op& op : embedding.ops) {
    for (const Param& param : op.params) first[param.name] = op.kind;
  }
  Texts problems;
  for (const Op& op : head.ops) {
    for (const Param& param : op.params) {
      const auto found = first.find(param.name);
      if (found == first.end() || (op.kind == OpKind::Loss && found->second == OpKind::Lookup)) continue;
      problems.push_back(cat(param.name, " is in the embedding and in the head"));
    }
  }
  return problems;
}

// Compares what the family states of its layers with their ops.
Texts problems_of_traits(const FamilyTraits& traits, const BlockGraph& layer) {
  const auto has = [&](OpKind kind) { return std::ranges::count(layer.ops, kind, &Op::kind) > 0; };
  Texts problems;
  if (has(OpKind::Rotary) && traits.positions != PositionKind::Rotary) {
    problems.push_back("the layer has rotary positions, and the family states learned ones");
  }
  if ((has(OpKind::SwiGlu) || has(OpKind::GeGlu)) && traits.feed_forward != FeedForward::Gated) {
    problems.push_back("the layer has a gate, and the family states a plain feed-forward branch");
  }
  if (std::ranges::count(layer.ops, Sees::All, &Op::sees) > 0 && traits.objective != Objective::Masked) {
    problems.push_back("the layer's attention sees later tokens, and the family states a causal objective");
  }
  return problems;
}

// A masked loss is that of the rows that the head picks.
Texts problems_of_objective(const FamilyTraits& traits, const BlockGraph& head) {
  const bool picks = std::ranges::count(head.ops, OpKind::PickRows, &Op::kind) > 0;
  if (picks == (traits.objective == Objective::Masked)) return {};
  return {picks ? "the head picks rows, and the family states a causal objective"
                : "the head picks no rows, and the family states a masked objective"};
}

bool has_split_letter(std::string_view letters) {
  return letters.find_first_of(kTensorLetters) != std::string_view::npos;
}

bool is_split(const Dim& dim) { return std::ranges::any_of(dim.segments, has_split_letter); }

// Returns true if all segments have the same split letter, as their major letter, or none has one.
bool divides(const Dim& dim) {
  return !is_split(dim) || std::ranges::all_of(dim.segments, [&](const std::string& segment) {
    return has_split_letter(segment.substr(0, 1)) && segment[0] == dim.segments[0][0] &&
           !has_split_letter(segment.substr(1));
  });
}

// Returns the reason why tensor ranks cannot compute the op, or "".
std::string fault_on_ranks(const BlockGraph& block, const Op& op) {
  std::vector<Dims> operands{block.values[op.out]};
  for (const int value : op.in) operands.push_back(block.values[value]);
  for (const Param& param : op.params) operands.push_back(param.dims);
  std::set<char> letters;
  for (const Dims& dims : operands) {
    if (!std::ranges::all_of(dims, divides)) return "has a split letter that is not the major one of its dim";
    if (std::ranges::count_if(dims, is_split) > 1) return "has a tensor with two split dims";
    for (const Dim& dim : dims) {
      if (is_split(dim)) letters.insert(dim.segments[0][0]);
    }
  }
  return letters.size() > 1 ? "has two split letters" : "";
}

}  // namespace

Texts problems_of_family(const ModelSpec& spec, const Family& family) {
  const FamilyBlocks& blocks = family.blocks;
  const BlockGraph embedding = blocks.embedding(spec), head = blocks.head(spec);
  const std::vector<BlockGraph> layers = layer_kinds(spec, blocks).kinds;
  Texts problems;
  append(problems, problems_of_place({"embedding", "bt", "btc", 0, embedding}));
  for (const BlockGraph& layer : layers) {
    append(problems, problems_of_place({"layer", "btc", "btc", static_cast<size_t>(family.traits.parts) - 1, layer}));
  }
  append(problems, problems_of_place({"head", "btc", "", 0, head}));
  if (!problems.empty()) return problems;
  append(problems, problems_of_letters(spec, embedding));
  for (const BlockGraph& layer : layers) append(problems, problems_of_letters(spec, layer));
  append(problems, problems_of_letters(spec, head));
  append(problems, problems_of_names(embedding, head));
  for (const BlockGraph& layer : layers) append(problems, problems_of_traits(family.traits, layer));
  append(problems, problems_of_objective(family.traits, head));
  return problems;
}

Texts problems_on_tensor_ranks(const ModelSpec& spec, const Family& family) {
  Texts problems;
  for (const BlockGraph& block : graph_of(spec, family.blocks).kinds) {
    for (const Op& op : block.ops) {
      const std::string fault = fault_on_ranks(block, op);
      if (!fault.empty()) problems.push_back(cat(described(block, op), " ", fault));
    }
    append(problems, problems_of_split(block, kTensorLetters));
  }
  return problems;
}

namespace {

// Returns a sentence for each opaque op of tokens with a rule that `meant` accepts.
template <class Meant>
Texts opaque_ops_of_tokens(const ModelSpec& spec, const Family& family, const std::string& ranks, const Meant& meant) {
  Texts problems;
  for (const BlockGraph& block : graph_of(spec, family.blocks).kinds) {
    for (const Op& op : block.ops) {
      const bool makes_tokens = text_of(block.values[op.out]).find('t') != std::string::npos;
      if (op.kind != OpKind::Opaque || !makes_tokens || !meant(block, op)) continue;
      problems.push_back(cat(described(block, op), " reads tokens that ", ranks, " ranks split"));
    }
  }
  return problems;
}

}  // namespace

Texts problems_on_split_tokens(const ModelSpec& spec, const Family& family) {
  return opaque_ops_of_tokens(spec, family, "tensor", [](const BlockGraph& block, const Op& op) {
    return !has_split_letter(rule_text(block, op));
  });
}

Texts problems_on_parts_of_sequences(const ModelSpec& spec, const Family& family) {
  return opaque_ops_of_tokens(spec, family, "context", [](const BlockGraph&, const Op&) { return true; });
}

}  // namespace braid::model
