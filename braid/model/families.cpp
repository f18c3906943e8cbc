// The graph and the extents that follow from a family's blocks.
#include "braid/model/families.h"

#include "braid/base/errors.h"
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
  extents['g'] = kTokenTypes;
  extents['j'] = tokens;  // a run that masks picks fewer
  extents['e'] = extents['s'] = spec.experts;
  extents['r'] = sequences * tokens * branches_per_token(spec);
  return extents;
}

std::string head_table(const ModelSpec& spec) { return spec.output_weights == OutputWeights::Tied ? "wte" : "head"; }

}  // namespace braid::model
