// GPT-2: learned positions, pre-LayerNorm blocks, GELU (tanh form), tied embeddings.
// Source: Radford et al. 2019; tensor parallel cuts as in Shoeybi et al., "Megatron-LM" (2019), section 3.
#pragma once

#include <memory>

#include "braid/nn/block.h"
#include "braid/nn/model.h"

namespace braid::nn {

// Makes a piece of the model on the parameters in `store` (model/families/gpt2.cpp lists them).
std::unique_ptr<Block> gpt2_block(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                  const RankContext& rank);

}  // namespace braid::nn
