// GPT-2: learned positions, pre-LayerNorm blocks, GELU (tanh form). Source: Radford et al. 2019.
//
//   embedding: wte.weight [v, c], wpe.weight [p, c]
//   blocks.N:  ln_1, attention.qkv [3 c, c], attention.projection [c, c], ln_2, mlp.up [f, c], mlp.down [c, f]
//   head:      ln_f, wte.weight or, untied, head.weight [v, c]
#include <nlohmann/json.hpp>

#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/model/hf_keys.h"

namespace braid::model {
namespace {

int gpt2_ffn(const ModelSpec& spec) { return 4 * spec.width; }

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

ModelSpec gpt2_model(const HfKeys& keys) {
  ModelSpec model;
  keys.take_size("vocab_size", model.vocab);
  keys.take_named_size("n_positions", "max_position_embeddings", model.context);
  keys.take_named_size("n_embd", "hidden_size", model.width);
  keys.take_named_size("n_layer", "num_hidden_layers", model.layers);
  keys.take_named_size("n_head", "num_attention_heads", model.heads);
  keys.take_optional_size("n_inner", model.ffn);
  keys.take_number("layer_norm_epsilon", model.norm_eps);
  keys.take_number("initializer_range", model.init_std);
  keys.need_one_of("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  keys.need("scale_attn_weights", true);
  keys.need("scale_attn_by_inverse_layer_idx", false);
  keys.need("add_cross_attention", false);
  if (!keys.flag("tie_word_embeddings", true)) model.output_weights = OutputWeights::Untied;
  return model;
}

HfModelType gpt2_type(const ModelSpec&) { return {"gpt2", "GPT2LMHeadModel"}; }

void put_gpt2(const ModelSpec& spec, nlohmann::ordered_json& json) {
  json["n_positions"] = spec.context;
  json["n_embd"] = spec.width;
  json["n_layer"] = spec.layers;
  json["n_head"] = spec.heads;
  json["n_inner"] = spec.ffn > 0 ? nlohmann::ordered_json(spec.ffn) : nlohmann::ordered_json();
  json["activation_function"] = "gelu_new";
  json["layer_norm_epsilon"] = spec.norm_eps;
  json["embd_pdrop"] = spec.dropout;
  json["resid_pdrop"] = spec.dropout;
  json["attn_pdrop"] = 0.0;
}

HfNames gpt2_names() {
  constexpr Orientation kTransposed = Orientation::Transposed;
  return {"transformer.",
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
          {".attn.bias", ".attn.masked_bias"}};
}

std::vector<Preset> gpt2_presets() {
  const char* const kPaper = "Radford et al. 2019, table 2; config.json of openai-community";
  constexpr int kContext = 1024, kVocab = 50257;
  return {
      {"gpt2-tiny", "ours, for trials", {.layers = 4, .heads = 4, .width = 128, .context = 256}},
      {"gpt2-124m",
       kPaper,
       {.layers = 12, .heads = 12, .width = 768, .context = kContext, .vocab = kVocab},
       {"gpt2", "gpt2-small"}},
      {"gpt2-350m",
       kPaper,
       {.layers = 24, .heads = 16, .width = 1024, .context = kContext, .vocab = kVocab},
       {"gpt2-medium"}},
      {"gpt2-774m",
       kPaper,
       {.layers = 36, .heads = 20, .width = 1280, .context = kContext, .vocab = kVocab},
       {"gpt2-large"}},
      {"gpt2-1.5b",
       kPaper,
       {.layers = 48, .heads = 25, .width = 1600, .context = kContext, .vocab = kVocab},
       {"gpt2-xl"}},
  };
}

}  // namespace

Family gpt2_family() {
  return {"gpt2",         {FeedForward::Plain, KeyHeads::OfEachHead, PositionKind::Learned, HeadForm::Fixed},
          gpt2_ffn,       {gpt2_embedding, gpt2_layer, gpt2_head},
          gpt2_names(),   {{{"gpt2", gpt2_model}}, gpt2_type, put_gpt2},
          gpt2_presets(), {"gpt"}};
}

}  // namespace braid::model
