// Gemma 2: rotary positions, norms of 1 + w before and after each branch, GeGLU, capped scores and logits, and a window
// in every other layer. Source: Gemma Team, "Gemma 2" (2024).
//
//   embedding: wte.weight [v, c], whose rows are multiplied with sqrt(c)
//   blocks.N:  norm_1 [c], attention.qkv [(k m + 2 k) d, c], attention.projection [c, k m d], norm_2 [c],
//              norm_3 [c], mlp.gate_up [2 f, c], mlp.down [c, f], norm_4 [c]
//   head:      norm_f [c], wte.weight or, untied, head.weight [v, c]
//
// model.window is that of layers 0, 2, 4 ..; the others see all tokens.
#include <cmath>
#include <nlohmann/json.hpp>

#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/model/hf_rope.h"
#include "braid/model/shape.h"

namespace braid::model {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

int gemma2_ffn(const ModelSpec& spec) { return 4 * spec.width; }

BlockGraph gemma2_embedding(const ModelSpec& spec) {
  return BlockBuilder(spec, "bt").lookup("wte", std::sqrt(static_cast<double>(spec.width))).dropout().build();
}

bool has_window(int layer) { return layer % 2 == 0; }

BlockGraph gemma2_layer(const ModelSpec& spec, int number) {
  BlockBuilder block(spec, "btc");
  block.norm_of_one_plus("norm_1").linear("attention.qkv", "[kmd|kd|kd]").apply(OpKind::Rotary);
  block.attention(has_window(number) ? spec.window : 0).linear("attention.projection", "c");
  block.norm_of_one_plus("norm_2").dropout().join().cut();
  block.norm_of_one_plus("norm_3").linear("mlp.gate_up", "[f|f]").geglu().linear("mlp.down", "c");
  return block.norm_of_one_plus("norm_4").dropout().join().build();
}

BlockGraph gemma2_head(const ModelSpec& spec) {
  return BlockBuilder(spec, "btc").norm_of_one_plus("norm_f").loss(head_table(spec)).build();
}

void need_alternating_layers(const HfKeys& keys, int layers) {
  Json wanted = Json::array();
  for (int layer = 0; layer < layers; ++layer) {
    wanted.push_back(has_window(layer) ? "sliding_attention" : "full_attention");
  }
  const Json* types = keys.find("layer_types");
  if (types && *types != wanted) {
    keys.refuse("layer_types", "must alternate, beginning with \"sliding_attention\", once for each layer");
  }
}

ModelSpec gemma2_model(const HfKeys& keys) {
  ModelSpec model{.family = ModelFamily::Gemma2, .attention_cap = 50, .logit_cap = 30, .query_scalar = 256};
  model.norm_eps = 1e-6;
  keys.take_sizes(model);
  keys.take_size_or("num_key_value_heads", 4, model.kv_heads);
  keys.take_size_or("head_dim", 256, model.head_width);
  if (int64_t{model.head_width} * model.heads == model.width) model.head_width = 0;
  keys.take_size_or("sliding_window", 4096, model.window);
  keys.take_cap("attn_logit_softcapping", model.attention_cap);
  keys.take_cap("final_logit_softcapping", model.logit_cap);
  keys.take_number("query_pre_attn_scalar", model.query_scalar);
  if (model.query_scalar == head_width(model)) model.query_scalar = 0;
  keys.take_number("rms_norm_eps", model.norm_eps);
  keys.take_number("initializer_range", model.init_std);
  keys.need("hidden_activation", "gelu_pytorch_tanh");
  keys.need("attention_bias", false);
  keys.need("use_bidirectional_attention", false);
  need_alternating_layers(keys, model.layers);
  take_rope(keys, model);
  if (!keys.flag("tie_word_embeddings", true)) model.output_weights = OutputWeights::Untied;
  return model;
}

HfModelType gemma2_type(const ModelSpec&) { return {"gemma2", "Gemma2ForCausalLM"}; }

// A number, or null where 0 turns it off.
template <class Number>
OrderedJson number_or_null(Number value) {
  return value > 0 ? OrderedJson(value) : OrderedJson();
}

void put_gemma2(const ModelSpec& spec, OrderedJson& json) {
  put_sizes(spec, json);
  json["num_key_value_heads"] = num_kv_heads(spec);
  json["head_dim"] = head_width(spec);
  json["hidden_activation"] = "gelu_pytorch_tanh";
  json["rms_norm_eps"] = spec.norm_eps;
  json["attention_dropout"] = 0.0;
  json["attention_bias"] = false;
  const double scalar = spec.query_scalar > 0 ? spec.query_scalar : head_width(spec);
  const bool whole = scalar == std::floor(scalar);
  json["query_pre_attn_scalar"] = whole ? OrderedJson(static_cast<int64_t>(scalar)) : OrderedJson(scalar);
  json["sliding_window"] = spec.window > 0 ? spec.window : spec.context;  // transformers takes no null here
  json["attn_logit_softcapping"] = number_or_null(spec.attention_cap);
  json["final_logit_softcapping"] = number_or_null(spec.logit_cap);
  put_rope(spec, json);
}

HfNames gemma2_names() {
  return {"model.",
          "model.layers.",
          {{"norm_1", {"input_layernorm"}},
           {"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
           {"attention.projection", {"self_attn.o_proj"}},
           {"norm_2", {"post_attention_layernorm"}},
           {"norm_3", {"pre_feedforward_layernorm"}},
           {"mlp.gate_up", {"mlp.gate_proj", "mlp.up_proj"}},
           {"mlp.down", {"mlp.down_proj"}},
           {"norm_4", {"post_feedforward_layernorm"}}},
          {{"wte", {"model.embed_tokens"}}, {"norm_f", {"model.norm"}}, {"head", {"lm_head"}}},
          {".rotary_emb.inv_freq"}};
}

// The sizes of a model of Gemma 2 by Google, or in their manner.
Preset gemma2(const char* name, const char* source, ModelSpec sizes) {
  sizes.family = ModelFamily::Gemma2;
  sizes.attention_cap = 50;
  sizes.logit_cap = 30;
  sizes.norm_eps = 1e-6;
  return {name, source, sizes};
}

std::vector<Preset> gemma2_presets() {
  ModelSpec google{.head_width = 256, .window = 4096, .context = 8192, .vocab = 256000};
  ModelSpec small = google, medium = google;
  small.layers = 26, small.heads = 8, small.kv_heads = 4, small.width = 2304, small.ffn = 9216;
  medium.layers = 42, medium.heads = 16, medium.kv_heads = 8, medium.width = 3584, medium.ffn = 14336;
  return {
      gemma2("gemma2-tiny", "ours, for trials",
             {.layers = 4, .heads = 4, .kv_heads = 2, .width = 128, .window = 128, .ffn = 384, .context = 256}),
      gemma2("gemma2-2b", "config.json of google/gemma-2-2b; Gemma Team 2024, table 1", small),
      gemma2("gemma2-9b", "config.json of google/gemma-2-9b; Gemma Team 2024, table 1", medium),
  };
}

}  // namespace

Family gemma2_family() {
  return {"gemma2",         {FeedForward::Gated, KeyHeads::Shared, PositionKind::Rotary, HeadForm::Capped},
          gemma2_ffn,       {gemma2_embedding, nullptr, gemma2_head, gemma2_layer},
          gemma2_names(),   {{{"gemma2", gemma2_model}}, gemma2_type, put_gemma2},
          gemma2_presets(), {"gemma-2"}};
}

}  // namespace braid::model
