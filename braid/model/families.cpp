// The graph and the extents that follow from a family's blocks.
#include "braid/model/families.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/model/op_table.h"
#include "braid/model/shape.h"

namespace braid::model {

ModelGraph graph_of(const ModelSpec& spec) {
  ModelGraph graph = graph_of(spec, family_of(spec).blocks);
  check(std::ssize(graph.kinds[1].cuts) + 1 == parts_of_layer(spec), "the layers of a family have its number of parts");
  return graph;
}

ModelGraph graph_of(const ModelSpec& spec, const FamilyBlocks& blocks) {
  check(spec.head_width > 0 || spec.width % spec.heads == 0, "heads divide the width where it gives their features");
  check(spec.heads % num_kv_heads(spec) == 0, "heads form groups");
  ModelGraph graph{{blocks.embedding(spec), blocks.layer(spec), blocks.head(spec)}, {0}};
  graph.blocks.insert(graph.blocks.end(), spec.layers, 1);
  graph.blocks.push_back(2);
  return graph;
}

namespace {

// Returns the mistakes in the ends of a block, and in the number of its parts.
std::vector<std::string> problems_of_ends(const Family& family, const ModelGraph& graph) {
  const BlockGraph &embedding = graph.kinds[0], &layer = graph.kinds[1], &head = graph.kinds[2];
  std::vector<std::string> problems;
  for (const BlockGraph& block : graph.kinds) {
    if (block.ops.empty()) return {"a block has no ops"};
  }
  if (embedding.ops[0].kind != OpKind::Lookup) problems.push_back("the embedding does not begin with a lookup");
  if (head.ops.back().kind != OpKind::Loss) problems.push_back("the head does not end with a loss");
  const Dims hidden = dims_of("btc");
  for (const Dims& dims : {embedding.values.back(), layer.values[0], layer.values.back(), head.values[0]}) {
    if (dims != hidden) problems.push_back(cat(text_of(dims), " is between two blocks, where btc belongs"));
  }
  if (std::ssize(layer.cuts) + 1 != family.traits.parts || embedding.cuts.size() + head.cuts.size() > 0) {
    problems.push_back(cat("the layer has ", counted(layer.cuts.size(), "cut"), ", and FamilyTraits::parts is ",
                           family.traits.parts, "; embedding and head have none"));
  }
  return problems;
}

}  // namespace

std::vector<std::string> problems_of(const Family& family, const ModelSpec& spec, int tensor_size) {
  const ModelGraph graph = graph_of(spec, family.blocks);
  std::vector<std::string> problems = problems_of_ends(family, graph);
  const auto add = [&](const std::vector<std::string>& more) {
    problems.insert(problems.end(), more.begin(), more.end());
  };
  for (const BlockGraph& block : graph.kinds) {
    add(problems_of(block));
    if (tensor_size > 1) add(problems_of_split(block, kTensorLetters));
  }
  return problems;
}

Extents extents_of(const ModelSpec& spec, double sequences, double tokens) {
  Extents extents;
  extents['b'] = sequences;
  extents['t'] = tokens;
  extents['c'] = spec.width;
  extents['k'] = num_kv_heads(spec);
  extents['m'] = static_cast<double>(spec.heads) / num_kv_heads(spec);
  extents['d'] = head_width(spec);
  extents['f'] = ffn_width(spec);
  extents['v'] = spec.vocab;
  extents['p'] = spec.context;
  extents['e'] = extents['s'] = spec.experts;
  extents['r'] = sequences * tokens * branches_per_token(spec);
  return extents;
}

std::string head_table(const ModelSpec& spec) { return spec.output_weights == OutputWeights::Tied ? "wte" : "head"; }

}  // namespace braid::model
