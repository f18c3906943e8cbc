// The reader of Hugging Face's config.json: the model types, and the keys that each of their classes reads.
#include "braid/model/hf_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "braid/base/checked_file.h"
#include "braid/base/json_text.h"
#include "braid/base/text.h"
#include "braid/model/hf_keys.h"

namespace braid::model {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostBytes = int64_t{1} << 20;  // a configuration is a few kilobytes

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

// Refuses a key of rotary positions with different values in two of its three places: the top level, "rope_scaling" and
// "rope_parameters".
void refuse_other_rope(const HfKeys& keys, const std::vector<HfKeys>& scaling, const std::vector<HfKeys>& parameters) {
  for (const auto& place : {scaling, parameters}) {
    for (const HfKeys& rope : place) {
      rope.agree("type", rope, "rope_type");
      for (const char* key : {"rope_theta", "original_max_position_embeddings", "partial_rotary_factor"})
        keys.agree(key, rope, key);
    }
  }
  if (scaling.empty() || parameters.empty()) return;
  const auto type_in = [](const HfKeys& rope) { return rope.find("rope_type") ? "rope_type" : "type"; };
  scaling[0].agree(type_in(scaling[0]), parameters[0], type_in(parameters[0]));
  for (const char* key : {"rope_theta", "factor", "low_freq_factor", "high_freq_factor",
                          "original_max_position_embeddings", "partial_rotary_factor"}) {
    scaling[0].agree(key, parameters[0], key);
  }
}

// Reads the rotary positions. "rope_parameters" also holds the base; the older "rope_scaling" does not.
void take_rope(const HfKeys& keys, ModelSpec& model) {
  const std::vector<HfKeys> scaling = keys.below("rope_scaling"), parameters = keys.below("rope_parameters");
  refuse_other_rope(keys, scaling, parameters);
  keys.need("partial_rotary_factor", 1.0);
  keys.take_number("rope_theta", model.rope_base);
  for (const auto& place : {scaling, parameters}) {
    for (const HfKeys& rope : place) {
      const char* type = rope.find("rope_type") ? "rope_type" : "type";
      rope.need_one_of(type, {"llama3", "default"});
      rope.take_number("rope_theta", model.rope_base);
      rope.need("partial_rotary_factor", 1.0);
      const Json* value = rope.find(type);
      if (!value || *value != "llama3") continue;
      model.rope_scaling = RopeScaling::Llama3;
      for (const char* needed : {"factor", "low_freq_factor", "high_freq_factor"}) {
        if (!rope.find(needed)) rope.refuse(needed, "must be given");
      }
      rope.take_number("factor", model.rope_factor);
      rope.take_number("low_freq_factor", model.rope_low_frequency);
      rope.take_number("high_freq_factor", model.rope_high_frequency);
      const char* original = "original_max_position_embeddings";
      (rope.find(original) || !keys.find(original) ? rope : keys).take_size(original, model.rope_context);
    }
  }
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
  keys.take_size("vocab_size", model.vocab);
  keys.take_size("max_position_embeddings", model.context);
  keys.take_size("hidden_size", model.width);
  keys.take_size("intermediate_size", model.ffn);
  keys.take_size("num_hidden_layers", model.layers);
  keys.take_size("num_attention_heads", model.heads);
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

struct HfFamily {
  const char* model_type;
  ModelSpec (*read)(const HfKeys& keys);
};
constexpr HfFamily kHfFamilies[] = {{"gpt2", gpt2_model},          {"llama", llama_model}, {"mistral", mistral_model},
                                    {"qwen2", qwen2_model},        {"qwen3", qwen3_model}, {"mixtral", mixtral_model},
                                    {"qwen3_moe", qwen3_moe_model}};

}  // namespace

ModelSpec parse_hf_config(const std::string& json_text, const std::string& origin, std::vector<Problem>& problems) {
  Json root;
  const JsonFault fault = read_json(json_text, root);
  if (fault.line > 0) {
    problems.push_back({cat(origin, ":", fault.line), "", fault.why, ""});
    return {};
  }
  if (!root.is_object()) {
    problems.push_back({origin, "", "must hold a JSON object", ""});
    return {};
  }
  const HfKeys keys(root, origin + ": ", problems);
  std::vector<std::string> known, quoted;
  for (const HfFamily& family : kHfFamilies) {
    known.emplace_back(family.model_type);
    quoted.push_back(quoted_text(known.back()));
  }
  keys.need_one_of("model_type", known);
  const Json* type = keys.find("model_type");
  if (!type) keys.refuse("model_type", cat("must be given, one of ", joined(quoted)));
  if (keys.find("quantization_config"))
    keys.refuse("quantization_config", "must not be there: braid reads weights of no such kind");
  keys.agree("torch_dtype", keys, "dtype");
  for (const HfFamily& family : kHfFamilies) {
    if (type && *type == family.model_type) return family.read(keys);
  }
  return {};
}

ModelSpec read_hf_config(const std::string& path, std::vector<Problem>& problems) {
  std::string text;
  try {
    text = file_content(path, kMostBytes);
  } catch (const IoError& error) {
    problems.push_back({"model.config", quoted_text(path), error.what(), ""});
    return {};
  }
  return parse_hf_config(text, path, problems);
}

}  // namespace braid::model
