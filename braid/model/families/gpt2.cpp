// The blocks of GPT-2, and its names at Hugging Face.
#include "braid/model/families/gpt2.h"

#include "braid/model/block_builder.h"

namespace braid::model {
namespace {

BlockGraph gpt2_embedding(const ModelSpec& spec) {
  return BlockBuilder(spec, "bt").lookup("wte").positions("wpe").dropout().build();
}

BlockGraph gpt2_layer(const ModelSpec& spec) {
  BlockBuilder block(spec, "btc");
  block.norm(OpKind::LayerNorm, "ln_1").linear("attention.qkv", "[kmd|kd|kd]").bias().attention();
  block.linear("attention.projection", "c").bias().dropout().join().cut();
  block.norm(OpKind::LayerNorm, "ln_2").to_experts("mlp.router");
  block.linear("mlp.up", "f").bias().apply(OpKind::Gelu).linear("mlp.down", "c").bias();
  return block.from_experts().dropout().join().build();
}

BlockGraph gpt2_head(const ModelSpec& spec) {
  return BlockBuilder(spec, "btc").norm(OpKind::LayerNorm, "ln_f").loss(head_table(spec)).build();
}

}  // namespace

Family gpt2_family() {
  constexpr Orientation kTransposed = Orientation::Transposed;
  return {gpt2_embedding,
          gpt2_layer,
          gpt2_head,
          {"transformer.",
           "transformer.h.",
           {{"ln_1", {"ln_1"}},
            {"attention.qkv", {"attn.c_attn"}, kTransposed},
            {"attention.projection", {"attn.c_proj"}, kTransposed},
            {"ln_2", {"ln_2"}},
            {"mlp.up", {"mlp.c_fc"}, kTransposed},
            {"mlp.down", {"mlp.c_proj"}, kTransposed}},
           {{"wte", {"transformer.wte"}},
            {"wpe", {"transformer.wpe"}},
            {"ln_f", {"transformer.ln_f"}},
            {"head", {"lm_head"}}},
           {".attn.bias", ".attn.masked_bias"}}};
}

}  // namespace braid::model
