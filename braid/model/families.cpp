// The graph and the extents that follow from a family's blocks.
#include "braid/model/families.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "braid/base/errors.h"
#include "braid/model/shape.h"

namespace braid::model {

ModelGraph graph_of(const ModelSpec& spec) {
  ModelGraph graph = graph_of(spec, family_of(spec).blocks);
  for (const BlockGraph& layer : graph.layer_kinds()) {
    check(std::ssize(layer.cuts) + 1 == parts_of_layer(spec), "the layers of a family have its number of parts");
  }
  return graph;
}

LayerKinds layer_kinds(const ModelSpec& spec, const FamilyBlocks& blocks) {
  LayerKinds layers;
  for (int layer = 0; layer < (blocks.layer_at ? spec.layers : 1); ++layer) {
    BlockGraph block = blocks.layer_at ? blocks.layer_at(spec, layer) : blocks.layer(spec);
    const auto known = std::ranges::find(layers.kinds, block);
    layers.of_layer.push_back(static_cast<int>(known - layers.kinds.begin()));
    if (known == layers.kinds.end()) layers.kinds.push_back(std::move(block));
  }
  layers.of_layer.resize(spec.layers, 0);
  return layers;
}

ModelGraph graph_of(const ModelSpec& spec, const FamilyBlocks& blocks) {
  check(spec.head_width > 0 || spec.width % spec.heads == 0, "heads divide the width where it gives their features");
  check(spec.heads % num_kv_heads(spec) == 0, "heads form groups");
  LayerKinds layers = layer_kinds(spec, blocks);
  ModelGraph graph{{blocks.embedding(spec)}, {0}};
  std::ranges::move(layers.kinds, std::back_inserter(graph.kinds));
  for (const int kind : layers.of_layer) graph.blocks.push_back(1 + kind);
  graph.blocks.push_back(static_cast<int>(graph.kinds.size()));
  graph.kinds.push_back(blocks.head(spec));
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
