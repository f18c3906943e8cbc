// Makes a model from its spec. The families are those of model/families.h.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "braid/layout/param_spec.h"
#include "braid/model/model_spec.h"
#include "braid/nn/block.h"

namespace braid::nn {

// A block of the model's list (embedding, blocks.0 .., head), or some of its parts. A model may be cut before and after
// every block, and at the cuts within a layer. The parts between possible cuts are its units. With one cut in a layer:
//
//   unit    0           1                    2              ...   2 layers        2 layers + 1
//           embedding | blocks.0 attention | blocks.0 mlp | ... | blocks.N mlp  | head
struct ModelPiece {
  static constexpr int kLast = std::numeric_limits<int>::max();

  int block = 0;
  int begin = 0, end = kLast;  // its parts; kLast: to the end of the block
  bool operator==(const ModelPiece&) const = default;
};

// Returns the pieces that make up units [begin, end) of a model, which has num_units(). All parts of a block become one
// piece, since the ops of neighbouring parts are fused.
std::vector<ModelPiece> pieces_of(const ModelSpec& spec, int begin, int end);

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
  ValueObserver* observer = nullptr;  // of one rank's values, called on its thread; null: none
};
// Returns the maker of the models of model/families.h. check() fails on a mixture of experts, which is planned alone.
const ModelMaker& model_maker(const ModelSpec& spec);

}  // namespace braid::nn
