// Descriptions of parameters and blocks before any memory exists: name, placement, initial values, decay. They are pure
// data, so that checkpoints and planners can list a model's parameters without building it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "braid/mesh/placement.h"

namespace braid::param {

// Sharding of parameters, gradients and optimizer states over ranks that would otherwise hold copies (ZeRO: Rajbhandari
// et al. 2020, section 5). All three are sharded alike, unit by unit, so a rank has the gradients and states of the
// elements that it updates.
//
//   flat buffer     | wte           | blocks.0          | blocks.1          | ln_f |
//   units           |---------------|-------------------|-------------------|------|      each a multiple of parts
//   of part 1 of 3  |    |xxxx|     |     |xxxxxx|      |     |xxxxxx|      |  |x| |      blocks of kAlign elements

// The ZeRO stages 0 to 3. Each shards what those before it do, and one thing more.
enum class Sharded { Nothing, Optimizer, Gradients, Parameters };

struct Sharding {
  Sharded what = Sharded::Nothing;
  int part = 0, parts = 1;  // this rank holds part `part` of `parts` equal ones of every unit
};

// Neighbouring whole parameters that are gathered and scattered at once: those of one block that are not tied, or one
// tied parameter, so that both of its places are cut alike.
struct ShardUnit {
  int64_t begin = 0, end = 0;  // elements of the flat buffers
  int first_param = 0, num_params = 0;

  int64_t length() const { return end - begin; }
};

// A stretch of the flat buffers whose masters this rank updates. Tensors are 1-D and of one length.
struct OwnedRange {
  int64_t begin = 0, end = 0;  // elements of the flat buffers
  int64_t place = 0;           // index of its first element when all owned ranges are laid one after another
  at::Tensor master;
  at::Tensor data;  // the same memory as `master` where their types are the same
  at::Tensor grad;

  int64_t length() const { return end - begin; }
};

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

// The auxiliary losses and counts that blocks contribute (nn/block.h). All ranks have those of the whole model, so
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
