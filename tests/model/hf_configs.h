// config.json files as their authors publish them, and what model::parse_hf_config() makes of texts.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "braid/base/text.h"
#include "braid/model/hf_config.h"

namespace braid::hf_configs {

inline const char* const kGpt2 = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
  "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
  "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
  "resid_pdrop": 0.1, "summary_activation": null, "task_specific_params": {"text-generation": {"do_sample": true}},
  "vocab_size": 50257})";

inline const char* const kLlama1b = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000,
  "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
  "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                   "original_max_position_embeddings": 8192, "rope_type": "llama3"},
  "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true,
  "vocab_size": 128256})";

inline ModelSpec legal(const std::string& json) {
  std::vector<Problem> found;
  const ModelSpec model = model::parse_hf_config(json, "config.json", found);
  EXPECT_TRUE(found.empty()) << ConfigError(found).what();
  return model;
}

inline std::string complaint(const std::string& json) {
  std::vector<Problem> found;
  model::parse_hf_config(json, "c", found);
  return found.empty() ? "accepted" : ConfigError(found).what();
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The figures of a model of Llama's shape.
inline const char* const kFigures = R"("vocab_size": 100, "max_position_embeddings": 64, "hidden_size": 48,
    "intermediate_size": 72, "num_hidden_layers": 2, "num_attention_heads": 16, "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0)";

inline ModelSpec of_type(const std::string& type, const std::string& more) {
  return legal(cat("{\"model_type\": \"", type, "\", ", kFigures, more, "}"));
}

}  // namespace braid::hf_configs
