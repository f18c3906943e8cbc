// GPT-2: learned positions, pre-LayerNorm blocks, GELU (tanh form), tied embeddings.
// Source: Radford et al. 2019; tensor parallel cuts as in Shoeybi et al., "Megatron-LM" (2019), section 3.
#pragma once

#include <memory>

#include "braid/layout/param_spec.h"
#include "braid/model/shape.h"
#include "braid/nn/block.h"
#include "braid/nn/model.h"

namespace braid::nn {

// The parameters of all layers + 2 blocks (embedding, blocks.0 .., head) as tensor rank `tensor_rank` of `tensor_size`
// holds them. `spec.vocab` must be resolved (> 0).
//
//   embedding: wte.weight [v, c] (use 0; of 2 when tied), wpe.weight [t, c]
//   blocks.N:  ln_1, attention.qkv [3c, c], attention.projection [c, c], ln_2, mlp.up [f, c], mlp.down [c, f]
//   head:      ln_f, wte.weight (use 1 of 2) or, untied, head.weight [v, c]
layout::ModelParams gpt2_params(const ModelSpec& spec, int tensor_rank, int tensor_size);

// A piece of gpt2_params, on the parameters in `store`.
std::unique_ptr<Block> gpt2_block(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                  const RankContext& rank);

}  // namespace braid::nn
