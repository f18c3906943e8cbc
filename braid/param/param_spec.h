// Descriptions of parameters and blocks: name, placement, initial values, weight decay. They are pure data, so that
// checkpoints and planners can list a model's parameters without allocating it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "braid/mesh/placement.h"

namespace braid::param {

// The ZeRO stages 0 to 3: sharding of parameters, gradients and optimizer states over ranks that would otherwise hold
// copies (Rajbhandari et al. 2020, section 5). Each stage shards one thing more than the stage before it. All three are
// sharded in the same way, unit by unit, so a rank has the gradients and states of the elements that it updates.
//
//   flat buffer     | wte           | blocks.0          | blocks.1          | ln_f |
//   units           |---------------|-------------------|-------------------|------|      each a multiple of parts
//   of part 1 of 3  |    |xxxx|     |     |xxxxxx|      |     |xxxxxx|      |  |x| |      blocks of kAlign elements
enum class Sharded { Nothing, Optimizer, Gradients, Parameters };

struct Sharding {
  Sharded what = Sharded::Nothing;
  int part = 0, parts = 1;  // this rank holds part `part` of the `parts` equal parts of every unit
};

// Neighbouring whole parameters that are gathered and scattered together. A unit consists of the parameters of one
// block that are not tied, or of one tied parameter, so that both of its uses are sharded in the same way.
struct ShardUnit {
  int64_t begin = 0, end = 0;  // elements of the flat buffers
  int first_param = 0, num_params = 0;

  int64_t length() const { return end - begin; }
};

// A range of the flat buffers whose masters this rank updates. The tensors are 1-D and of equal length.
struct OwnedRange {
  int64_t begin = 0, end = 0;  // elements of the flat buffers
  int64_t place = 0;           // index of the first element if all owned ranges are laid out one after another
  at::Tensor master;
  at::Tensor data;  // the same memory as `master` if their types are equal
  at::Tensor grad;

  int64_t length() const { return end - begin; }
};

// The kind of initial values. For the element with flattened *global* index i, Normal takes draw i of stream_key(seed,
// name). So the values do not depend on the layout.
struct Init {
  enum class Kind { Zeros, Ones, Normal } kind = Kind::Zeros;
  double std = 0;
  bool operator==(const Init&) const = default;
};

enum class WeightDecay { Yes, No };

// Yes: a matrix that maps features to features, which an optimizer may update as a whole. No: all other parameters,
// such as a table whose rows belong to tokens or positions.
enum class LinearMap { Yes, No };

// The halves of a transformer block, between which a model may be cut. Embedding and head are whole.
enum class BlockPart { Whole, Attention, FeedForward };

struct ParamSpec {
  std::string name;  // "blocks.3.attention.qkv.weight"; equal names are one parameter (tied)
  mesh::Placement placement;
  Init init;
  WeightDecay decay = WeightDecay::Yes;
  int use = 0;   // the number of this use, 0 .. uses - 1
  int uses = 1;  // number of uses in the whole model: 2 for a tied embedding
  LinearMap linear = LinearMap::No;
  BlockPart part = BlockPart::Whole;  // the part of the block that it belongs to
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

}  // namespace braid::param
