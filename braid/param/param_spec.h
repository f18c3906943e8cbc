// Descriptions of parameters and blocks before any memory exists: name, placement, initial values, decay. They are pure
// data, so that checkpoints and planners can list a model's parameters without building it.
#pragma once

#include <string>
#include <vector>

#include "braid/mesh/placement.h"

namespace braid::param {

// Initial values. Normal draws number i of stream_key(seed, name) for the element with flattened *global* index i, so
// they do not depend on the layout.
struct Init {
  enum class Kind { Zeros, Ones, Normal } kind = Kind::Zeros;
  double std = 0;
  bool operator==(const Init&) const = default;
};

enum class WeightDecay { Yes, No };

// Yes for a matrix that maps features to features, which an optimizer may update as a whole. No for a table, whose rows
// stand for tokens or positions.
enum class LinearMap { Yes, No };

// The halves of a transformer block, between which a model may be cut. Embedding and head are whole.
enum class BlockPart { Whole, Attention, FeedForward };

struct ParamSpec {
  std::string name;  // "blocks.3.attention.qkv.weight"; equal names are one parameter (tied)
  mesh::Placement placement;
  Init init;
  WeightDecay decay = WeightDecay::Yes;
  int use = 0;   // which of the parameter's uses this is: 0 .. uses - 1
  int uses = 1;  // in the whole model: 2 for a tied embedding
  LinearMap linear = LinearMap::No;
  BlockPart part = BlockPart::Whole;  // of its block, that it belongs to
};

// The auxiliary losses and counts that blocks contribute (nn/auxiliary.h). All ranks have those of the whole model, so
// that they can add them up. Names are unique in a model.
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

}  // namespace braid::param
