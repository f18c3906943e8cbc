// The places where a model may be cut: before and after every block, and between the two branches of a transformer
// block.
//
//   unit    0           1                    2              ...   2 layers        2 layers + 1
//           embedding | blocks.0 attention | blocks.0 mlp | ... | blocks.N mlp  | head
#pragma once

#include <vector>

#include "braid/param/param_spec.h"

namespace braid::nn {

// A block of the model's list (embedding, blocks.0 .., head), or a half of one.
struct ModelPiece {
  int block = 0;
  param::BlockPart part = param::BlockPart::Whole;  // embedding and head are whole
  bool operator==(const ModelPiece&) const = default;
};

// The pieces that make up units [begin, end) of the num_units() of a model of `layers` transformer blocks: both halves
// of a block are one piece, which is faster than two.
std::vector<ModelPiece> pieces_of(int begin, int end, int layers);

// The parameters of `piece`, under the names that they have in the whole model.
param::BlockSpec params_of(const ModelPiece& piece, const param::ModelParams& params);

}  // namespace braid::nn
