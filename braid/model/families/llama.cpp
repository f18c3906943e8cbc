// Llama, Mistral, Qwen 2 and Qwen 3: rotary positions, RMSNorm, gated feed-forward. Source: Touvron et al. 2023.
//
//   embedding: wte.weight [v, c]
//   blocks.N:  norm_1 [c], attention.qkv [(k m + 2 k) d, c], and attention.qkv.bias with model.qkv_bias,
//              attention.norm_q [d] and norm_k [d] with model.qk_norm, attention.projection [c, k m d],
//              norm_2 [c], mlp.gate_up [2 f, c], mlp.down [c, f]
//   head:      norm_f [c], wte.weight or, untied, head.weight [v, c]
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/model/hf_rope.h"
#include "braid/model/shape.h"

namespace braid::model {
namespace {

using Json = nlohmann::json;

int llama_ffn(const ModelSpec& spec) {
  constexpr int kMultiple = 64;
  const int64_t wanted = (int64_t{8} * spec.width + 2) / 3;
  return static_cast<int>((wanted + kMultiple - 1) / kMultiple * kMultiple);
}

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

// The differences between classes of Llama's shape: their defaults for missing keys, and the bias flags that they read.
// A key that a class does not read may have any value.
struct HfClass {
  int kv_heads = 0, head_width = 0;      // defaults if the keys are missing
  std::vector<std::string> biases = {};  // flags that must be false
};

ModelSpec llama_shaped_model(const HfKeys& keys, const HfClass& reads) {
  ModelSpec model;
  model.family = ModelFamily::Llama;
  model.norm_eps = 1e-6;
  keys.take_sizes(model);
  keys.take_size_or("num_key_value_heads", reads.kv_heads, model.kv_heads);
  keys.take_size_or("head_dim", reads.head_width, model.head_width);
  if (int64_t{model.head_width} * model.heads == model.width) model.head_width = 0;
  keys.take_number("rms_norm_eps", model.norm_eps);
  keys.take_number("initializer_range", model.init_std);
  keys.need_one_of("hidden_act", {"silu", "swish"});
  for (const std::string& bias : reads.biases) keys.need(bias.c_str(), false);
  take_rope(keys, model);
  if (!keys.flag("tie_word_embeddings", false)) model.output_weights = OutputWeights::Untied;
  return model;
}

ModelSpec llama_model(const HfKeys& keys) {
  return llama_shaped_model(keys, {.biases = {"attention_bias", "mlp_bias"}});
}

// Returns true if "layer_types" gives layers a window; nothing if it is not a list. A window in only some of the layers
// is refused.
std::optional<bool> layers_slide(const HfKeys& keys, int layers) {
  const Json* types = keys.find("layer_types");
  if (!types || !types->is_array()) return {};
  const auto sliding = std::count(types->begin(), types->end(), Json("sliding_attention"));
  if (sliding > 0 && sliding != layers) keys.refuse("layer_types", "must be the same of all layers");
  return sliding > 0;
}

ModelSpec mistral_model(const HfKeys& keys) {
  ModelSpec model = llama_shaped_model(keys, {.kv_heads = 8});
  keys.take_size_or("sliding_window", 4096, model.window);
  if (model.window > 0 && !layers_slide(keys, model.layers).value_or(true)) model.window = 0;
  return model;
}

// Reads Qwen's window. Without "layer_types", the first "max_window_layers" layers have no window.
void take_windows_by_layer(const HfKeys& keys, ModelSpec& model) {
  int window = 0, first = 28;
  if (keys.flag("use_sliding_window", false)) keys.take_size_or("sliding_window", 4096, window);
  if (window == 0) return;
  if (const auto slide = layers_slide(keys, model.layers)) {
    if (*slide) model.window = window;
    return;
  }
  const Json* given = keys.find("max_window_layers");
  if (given && given->is_number_integer() && *given >= 0) first = given->get<int>();
  if (first < model.layers) model.window = window;
  if (0 < first && first < model.layers) keys.refuse("max_window_layers", "must be 0, or at least num_hidden_layers");
}

ModelSpec qwen2_model(const HfKeys& keys) {
  ModelSpec model = llama_shaped_model(keys, {.kv_heads = 32});
  model.qkv_bias = true;
  take_windows_by_layer(keys, model);
  return model;
}

ModelSpec qwen3_model(const HfKeys& keys) {
  ModelSpec model = llama_shaped_model(keys, {.kv_heads = 32, .head_width = 128, .biases = {"attention_bias"}});
  model.qk_norm = true;
  take_windows_by_layer(keys, model);
  return model;
}

void take_experts(const HfKeys& keys, const char* count, ModelSpec& model) {
  keys.take_size(count, model.experts);
  keys.take_size("num_experts_per_tok", model.experts_per_token);
}

ModelSpec mixtral_model(const HfKeys& keys) {
  ModelSpec model = llama_shaped_model(keys, {.kv_heads = 8});
  if (!keys.find("rms_norm_eps")) model.norm_eps = 1e-5;
  if (!keys.find("rope_theta") && !keys.find("rope_parameters")) model.rope_base = 1e6;
  keys.take_size_or("sliding_window", 0, model.window);
  keys.agree("num_experts", keys, "num_local_experts");
  take_experts(keys, keys.find("num_local_experts") || !keys.find("num_experts") ? "num_local_experts" : "num_experts",
               model);
  return model;
}

// Every layer must have experts. "intermediate_size" is not read: it is the width of layers without experts.
ModelSpec qwen3_moe_model(const HfKeys& keys) {
  ModelSpec model = llama_shaped_model(keys, {.kv_heads = 4, .biases = {"attention_bias"}});
  model.qk_norm = true;
  take_windows_by_layer(keys, model);
  keys.take_size("moe_intermediate_size", model.ffn);
  keys.need("decoder_sparse_step", 1);
  keys.need("mlp_only_layers", Json::array());
  take_experts(keys, "num_experts", model);
  return model;
}

HfModelType llama_type(const ModelSpec& spec) {
  if (spec.qk_norm) return {"qwen3", "Qwen3ForCausalLM"};
  if (spec.qkv_bias) return {"qwen2", "Qwen2ForCausalLM"};
  // Llama's class requires that the number of heads divides the width, whatever head_dim is.
  const bool plain = spec.window == 0 && spec.width % spec.heads == 0;
  return plain ? HfModelType{"llama", "LlamaForCausalLM"} : HfModelType{"mistral", "MistralForCausalLM"};
}

void put_window(const ModelSpec& spec, const std::string& type, nlohmann::ordered_json& json) {
  if (type == "mistral")
    json["sliding_window"] = spec.window > 0 ? nlohmann::ordered_json(spec.window) : nlohmann::ordered_json();
  if (!type.starts_with("qwen")) return;
  json["use_sliding_window"] = spec.window > 0;
  if (spec.window == 0) return;
  json["sliding_window"] = spec.window;
  json["max_window_layers"] = 0;
}

void put_llama_shaped(const ModelSpec& spec, nlohmann::ordered_json& json) {
  const std::string type = llama_type(spec).name;
  put_sizes(spec, json);
  json["num_key_value_heads"] = num_kv_heads(spec);
  json["head_dim"] = head_width(spec);
  json["hidden_act"] = "silu";
  json["rms_norm_eps"] = spec.norm_eps;
  json["attention_dropout"] = 0.0;
  if (type == "llama" || type == "qwen3") json["attention_bias"] = false;
  if (type == "llama") json["mlp_bias"] = false;
  put_rope(spec, json);
  put_window(spec, type, json);
}

// Both sides form rotary pairs from the two halves of a head, so rows keep their order.
HfNames llama_names() {
  return {"model.",
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
          {".rotary_emb.inv_freq"}};
}

// The sizes of a model of Llama 3, with the rotary scaling of Llama 3.1 and later.
Preset llama3(const char* name, double rope_factor, ModelSpec sizes, std::vector<std::string> other_names = {}) {
  sizes.family = ModelFamily::Llama;
  sizes.kv_heads = 8;
  sizes.context = 8192;
  sizes.vocab = 128256;
  sizes.rope_base = 500000;
  sizes.rope_scaling = RopeScaling::Llama3;
  sizes.rope_factor = rope_factor;
  return {name,
          "config.json of meta-llama, with the 8192 tokens of the first training (Grattafiori et al. 2024, section "
          "3.4.1)",
          sizes, std::move(other_names)};
}

std::vector<Preset> llama_presets() {
  constexpr auto kLlama = ModelFamily::Llama;
  constexpr auto kUntied = OutputWeights::Untied;
  const char* const kOurs = "ours, for trials";
  return {
      {"llama-tiny",
       kOurs,
       {.family = kLlama, .layers = 4, .heads = 4, .kv_heads = 2, .width = 128, .ffn = 384, .context = 256}},
      {"llama-small",
       kOurs,
       {.family = kLlama, .layers = 6, .heads = 6, .kv_heads = 2, .width = 384, .ffn = 1024, .context = 256}},
      {"tinyllama-1.1b",
       "config.json of TinyLlama/TinyLlama_v1.1; Zhang et al. 2024, table 2",
       {.family = kLlama,
        .layers = 22,
        .heads = 32,
        .kv_heads = 4,
        .width = 2048,
        .ffn = 5632,
        .context = 2048,
        .vocab = 32000,
        .output_weights = kUntied}},
      llama3("llama-1b", 32, {.layers = 16, .heads = 32, .width = 2048, .ffn = 8192}),
      llama3("llama-3b", 32, {.layers = 28, .heads = 24, .width = 3072, .ffn = 8192}),
      llama3("llama-8b", 8, {.layers = 32, .heads = 32, .width = 4096, .ffn = 14336, .output_weights = kUntied},
             {"llama-7b"}),
  };
}

}  // namespace

Family llama_family() {
  return {"llama",
          {FeedForward::Gated, KeyHeads::Shared, PositionKind::Rotary, HeadForm::Free},
          llama_ffn,
          {llama_embedding, llama_layer, llama_head},
          llama_names(),
          {{{"llama", llama_model},
            {"mistral", mistral_model},
            {"qwen2", qwen2_model},
            {"qwen3", qwen3_model},
            {"mixtral", mixtral_model},
            {"qwen3_moe", qwen3_moe_model}},
           llama_type,
           put_llama_shaped},
          llama_presets(),
          {"llama3"}};
}

}  // namespace braid::model
