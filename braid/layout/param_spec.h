// Descriptions of parameters and blocks: name, placement, initial values, weight decay. They are pure data, so that
// checkpoints and planners can list a model's parameters without allocating it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/mesh/placement.h"
#include "braid/model/param_traits.h"

namespace braid::layout {

struct ParamSpec {
  std::string name;  // "blocks.3.attention.qkv.weight"; equal names are one parameter (tied)
  mesh::Placement placement;
  model::Init init;
  model::WeightDecay decay = model::WeightDecay::Yes;
  int use = 0;   // the number of this use, 0 .. uses - 1
  int uses = 1;  // number of uses in the whole model: 2 for a tied embedding
  model::LinearMap linear = model::LinearMap::No;
  int part = 0;  // the part of its block, between cuts (model/graph.h), that it belongs to
  model::Trained trained = model::Trained::Yes;
};

// The auxiliary losses and counts that blocks contribute (nn/block.h). Every rank has those of the whole model, so that
// the ranks can all-reduce them. Names are unique in a model.
struct AuxiliarySpec {
  struct Count {
    std::string name;  // "blocks.3.router.tokens"
    int64_t size = 1;
  };
  std::vector<std::string> losses = {};
  std::vector<Count> counts = {};

  bool empty() const { return losses.empty() && counts.empty(); }
};

// A block's parameters, in a fixed order. A model is a list of these.
struct BlockSpec {
  std::string name;  // "embedding", "blocks.3", "head"
  std::vector<ParamSpec> params;
  AuxiliarySpec auxiliaries = {};
};
using ModelParams = std::vector<BlockSpec>;

}  // namespace braid::layout
