// Llama and the models of its shape: rotary positions, pre-RMSNorm blocks, grouped-query attention, SwiGLU. Keys of the
// model say what the others have: a sliding window (Mistral), biases on queries, keys and values (Qwen 2), heads of a
// width of their own with a norm on queries and keys (Qwen 3).
// Source: Touvron et al., "Llama 2" (2023), section 2.2; Grattafiori et al., "The Llama 3 Herd of Models" (2024),
// section 3.2; Jiang et al., "Mistral 7B" (2023), section 2; Yang et al., "Qwen2" (2024), section 2.2, and "Qwen3"
// (2025), section 2; tensor parallel cuts as in Shoeybi et al., "Megatron-LM" (2019), section 3.
#pragma once

#include <memory>

#include "braid/layout/param_spec.h"
#include "braid/model/shape.h"
#include "braid/nn/block.h"
#include "braid/nn/model.h"

namespace braid::nn {

// The parameters of all layers + 2 blocks (embedding, blocks.0 .., head) as tensor rank `tensor_rank` of `tensor_size`
// holds them. `spec.vocab` must be resolved (> 0). h heads, k key and value heads of d features, f features inside the
// MLP:
//
//   embedding: wte.weight [v, c] (use 0; of 2 when tied)
//   blocks.N:  norm_1 [c], attention.qkv [(h + 2 k) d, c], and attention.qkv.bias with model.qkv_bias,
//              attention.norm_q [d] and norm_k [d] with model.qk_norm, attention.projection [c, h d],
//              norm_2 [c], mlp.gate_up [2f, c], mlp.down [c, f]
//   head:      norm_f [c], wte.weight (use 1 of 2) or, untied, head.weight [v, c]
layout::ModelParams llama_params(const ModelSpec& spec, int tensor_rank, int tensor_size);

// A piece of llama_params, on the parameters in `store`.
std::unique_ptr<Block> llama_block(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                   const RankContext& rank);

}  // namespace braid::nn
