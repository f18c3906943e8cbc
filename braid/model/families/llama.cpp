// The blocks of Llama, and its names at Hugging Face.
#include "braid/model/families/llama.h"

#include "braid/model/block_builder.h"

namespace braid::model {
namespace {

BlockGraph llama_embedding(const ModelSpec& spec) { return BlockBuilder(spec, "bt").lookup("wte").dropout().build(); }

BlockGraph llama_layer(const ModelSpec& spec) {
  BlockBuilder block(spec, "btc");
  block.norm(OpKind::RmsNorm, "norm_1").linear("attention.qkv", "[kmd|kd|kd]");
  if (spec.qkv_bias) block.bias();
  if (spec.qk_norm) block.head_norms("attention.norm");
  block.apply(OpKind::Rotary).attention().linear("attention.projection", "c").dropout().join().cut();
  block.norm(OpKind::RmsNorm, "norm_2").to_experts("mlp.router");
  block.linear("mlp.gate_up", "[f|f]").swiglu().linear("mlp.down", "c");
  return block.from_experts().dropout().join().build();
}

BlockGraph llama_head(const ModelSpec& spec) {
  return BlockBuilder(spec, "btc").norm(OpKind::RmsNorm, "norm_f").loss(head_table(spec)).build();
}

}  // namespace

// Both sides form rotary pairs from the two halves of a head, so rows keep their order.
Family llama_family() {
  return {llama_embedding,
          llama_layer,
          llama_head,
          {"model.",
           "model.layers.",
           {{"norm_1", {"input_layernorm"}},
            {"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
            {"attention.norm_q", {"self_attn.q_norm"}},
            {"attention.norm_k", {"self_attn.k_norm"}},
            {"attention.projection", {"self_attn.o_proj"}},
            {"norm_2", {"post_attention_layernorm"}},
            {"mlp.gate_up", {"mlp.gate_proj", "mlp.up_proj"}},
            {"mlp.down", {"mlp.down_proj"}}},
           {{"wte", {"model.embed_tokens"}}, {"norm_f", {"model.norm"}}, {"head", {"lm_head"}}},
           {".rotary_emb.inv_freq"}}};
}

}  // namespace braid::model
