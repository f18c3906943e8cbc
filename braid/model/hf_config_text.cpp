// The writer of Hugging Face's config.json: the keys of each model type. transformers 4 and 5 read it.
#include "braid/model/hf_config_text.h"

#include <nlohmann/json.hpp>

#include "braid/base/text.h"
#include "braid/model/shape.h"

namespace braid::model {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct HfModelType {
  const char *name, *architecture;
};

HfModelType hf_model_type(const ModelSpec& spec) {
  if (spec.family == ModelFamily::Gpt2) return {"gpt2", "GPT2LMHeadModel"};
  if (spec.qk_norm) return {"qwen3", "Qwen3ForCausalLM"};
  if (spec.qkv_bias) return {"qwen2", "Qwen2ForCausalLM"};
  // Llama's class requires that the number of heads divides the width, whatever head_dim is.
  const bool plain = spec.window == 0 && spec.width % spec.heads == 0;
  return plain ? HfModelType{"llama", "LlamaForCausalLM"} : HfModelType{"mistral", "MistralForCausalLM"};
}

void put_gpt2(const ModelSpec& spec, OrderedJson& json) {
  json["n_positions"] = spec.context;
  json["n_embd"] = spec.width;
  json["n_layer"] = spec.layers;
  json["n_head"] = spec.heads;
  json["n_inner"] = spec.ffn > 0 ? OrderedJson(spec.ffn) : OrderedJson();
  json["activation_function"] = "gelu_new";
  json["layer_norm_epsilon"] = spec.norm_eps;
  json["embd_pdrop"] = spec.dropout;
  json["resid_pdrop"] = spec.dropout;
  json["attn_pdrop"] = 0.0;
}

void put_rope(const ModelSpec& spec, OrderedJson& json) {
  json["rope_theta"] = spec.rope_base;
  if (spec.rope_scaling == RopeScaling::None) {
    json["rope_scaling"] = nullptr;
    return;
  }
  json["rope_scaling"] = {{"rope_type", "llama3"},
                          {"factor", spec.rope_factor},
                          {"low_freq_factor", spec.rope_low_frequency},
                          {"high_freq_factor", spec.rope_high_frequency},
                          {"original_max_position_embeddings", spec.rope_context}};
}

void put_window(const ModelSpec& spec, const std::string& type, OrderedJson& json) {
  if (type == "mistral") json["sliding_window"] = spec.window > 0 ? OrderedJson(spec.window) : OrderedJson();
  if (!type.starts_with("qwen")) return;
  json["use_sliding_window"] = spec.window > 0;
  if (spec.window == 0) return;
  json["sliding_window"] = spec.window;
  json["max_window_layers"] = 0;
}

void put_llama_shaped(const ModelSpec& spec, const std::string& type, OrderedJson& json) {
  json["max_position_embeddings"] = spec.context;
  json["hidden_size"] = spec.width;
  json["intermediate_size"] = ffn_width(spec);
  json["num_hidden_layers"] = spec.layers;
  json["num_attention_heads"] = spec.heads;
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

}  // namespace

std::string hf_config_text(const ModelSpec& spec, const HfConfigDetails& details, std::vector<Problem>& problems) {
  const HfModelType type = hf_model_type(spec);
  if (spec.qk_norm && spec.qkv_bias) {
    problems.push_back(
        {"model.qkv_bias", "true", "must be false beside model.qk_norm: no model type has both", "false"});
  }
  if (spec.experts > 0) {
    problems.push_back({"model.experts", cat(spec.experts), "must be 0: no experts are written", "0"});
  }
  OrderedJson json;
  json["architectures"] = {type.architecture};
  json["model_type"] = type.name;
  json["vocab_size"] = spec.vocab;
  if (spec.family == ModelFamily::Gpt2) {
    put_gpt2(spec, json);
  } else {
    put_llama_shaped(spec, type.name, json);
  }
  json["initializer_range"] = spec.init_std;
  json["tie_word_embeddings"] = spec.output_weights == OutputWeights::Tied;
  json["bos_token_id"] = nullptr;
  json["eos_token_id"] = details.end_of_text ? OrderedJson(*details.end_of_text) : OrderedJson();
  json["torch_dtype"] = details.type;
  json["use_cache"] = true;
  return json.dump(2) + "\n";
}

}  // namespace braid::model
