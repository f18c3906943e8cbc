// Llama, Mistral, Qwen 2 and Qwen 3: rotary positions, RMSNorm, gated feed-forward. Source: Touvron et al. 2023.
//
//   embedding: wte.weight [v, c]
//   blocks.N:  norm_1 [c], attention.qkv [(k m + 2 k) d, c], and attention.qkv.bias with model.qkv_bias,
//              attention.norm_q [d] and norm_k [d] with model.qk_norm, attention.projection [c, k m d],
//              norm_2 [c], mlp.gate_up [2 f, c], mlp.down [c, f]
//   head:      norm_f [c], wte.weight or, untied, head.weight [v, c]
#pragma once

#include "braid/model/families.h"

namespace braid::model {

Family llama_family();

}  // namespace braid::model
