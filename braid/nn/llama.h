// Llama and the models of its shape: rotary positions, pre-RMSNorm blocks, grouped-query attention, SwiGLU. Keys of the
// model say what the others have: a sliding window (Mistral), biases on queries, keys and values (Qwen 2), heads of a
// width of their own with a norm on queries and keys (Qwen 3).
// Source: Touvron et al., "Llama 2" (2023), section 2.2; Grattafiori et al., "The Llama 3 Herd of Models" (2024),
// section 3.2; Jiang et al., "Mistral 7B" (2023), section 2; Yang et al., "Qwen2" (2024), section 2.2, and "Qwen3"
// (2025), section 2; tensor parallel cuts as in Shoeybi et al., "Megatron-LM" (2019), section 3.
#pragma once

#include <memory>

#include "braid/nn/block.h"
#include "braid/nn/model.h"

namespace braid::nn {

// Makes a piece of the model on the parameters in `store` (model/families/llama.cpp lists them).
std::unique_ptr<Block> llama_block(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                   const RankContext& rank);

}  // namespace braid::nn
