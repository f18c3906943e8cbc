// GPT-2: learned positions, pre-LayerNorm blocks, GELU (tanh form). Source: Radford et al. 2019.
//
//   embedding: wte.weight [v, c], wpe.weight [p, c]
//   blocks.N:  ln_1, attention.qkv [3 c, c], attention.projection [c, c], ln_2, mlp.up [f, c], mlp.down [c, f]
//   head:      ln_f, wte.weight or, untied, head.weight [v, c]
#pragma once

#include "braid/model/families.h"

namespace braid::model {

Family gpt2_family();

}  // namespace braid::model
