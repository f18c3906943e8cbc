// Makes a model from its spec. The families are those of model/families.h.
#pragma once

#include <memory>
#include <vector>

#include "braid/layout/param_spec.h"
#include "braid/model/model_spec.h"
#include "braid/nn/block.h"

namespace braid::nn {

// A block of the model's list (embedding, blocks.0 .., head), or one half of a block. A model may be cut before and
// after every block, and between the two branches of a transformer block. The parts between possible cuts are its
// units:
//
//   unit    0           1                    2              ...   2 layers        2 layers + 1
//           embedding | blocks.0 attention | blocks.0 mlp | ... | blocks.N mlp  | head
struct ModelPiece {
  int block = 0;
  layout::BlockPart part = layout::BlockPart::Whole;  // embedding and head are whole
  bool operator==(const ModelPiece&) const = default;
};

// Returns the pieces that make up units [begin, end) of a model of `layers` transformer blocks, which has num_units()
// units. Both halves of a block become one piece, which is faster than two.
std::vector<ModelPiece> pieces_of(int begin, int end, int layers);

// Returns the parameters of `piece`, under their names in the whole model.
layout::BlockSpec params_of(const ModelPiece& piece, const layout::ModelParams& params);

// Makes a piece of the model on the parameters in `store`.
std::unique_ptr<Block> model_block(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                   const RankContext& rank);

// The parameters and pieces of one family, as layout::model_params() and model_block() give them. A Trainer takes a
// ModelMaker for a model whose family no spec names.
struct ModelMaker {
  layout::ModelParams (*params)(const ModelSpec& spec, int tensor_rank, int tensor_size);
  std::unique_ptr<Block> (*block)(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                  const RankContext& rank);
};
// Returns the maker of the models of model/families.h. check() fails on a mixture of experts, which is planned alone.
const ModelMaker& model_maker(const ModelSpec& spec);

}  // namespace braid::nn
