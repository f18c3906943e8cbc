// A model by its spec: the one place that knows which families there are.
#pragma once

#include <memory>
#include <vector>

#include "braid/nn/block.h"
#include "braid/param/param_spec.h"
#include "braid/spec/model_spec.h"

namespace braid::nn {

// The places where a model may be cut: before and after every block, and between the two branches of a transformer
// block.
//
//   unit    0           1                    2              ...   2 layers        2 layers + 1
//           embedding | blocks.0 attention | blocks.0 mlp | ... | blocks.N mlp  | head

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

// The parameters of all layers + 2 blocks (embedding, blocks.0 .., head) as tensor rank `tensor_rank` of `tensor_size`
// holds them. `spec.vocab` must be resolved (> 0). gpt2.h and llama.h list them.
param::ModelParams model_params(const ModelSpec& spec, int tensor_rank, int tensor_size);

// A piece of model_params, on the parameters in `store`.
std::unique_ptr<Block> model_block(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                   const RankContext& rank);

// The two functions above, of one family. A Trainer is given one for a model of a family that no spec names.
struct ModelMaker {
  param::ModelParams (*params)(const ModelSpec& spec, int tensor_rank, int tensor_size);
  std::unique_ptr<Block> (*block)(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                  const RankContext& rank);
};
const ModelMaker& model_maker(const ModelSpec& spec);

// Elements of the whole model; a tied parameter once, padding not at all.
int64_t count_params(const ModelSpec& spec);

}  // namespace braid::nn
