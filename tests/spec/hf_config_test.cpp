// config.json files as their authors publish them, and what is said to those we cannot follow.
#include "braid/model/hf_config.h"

#include <cstdio>
#include <fstream>

#include "braid/model/preset.h"
#include "braid/spec/describe.h"
#include "braid/spec/fields.h"
#include "braid/spec/parse.h"
#include "tests/model/hf_configs.h"

namespace braid::spec::hf_config_test {
namespace {

using namespace hf_configs;

ModelSpec preset(const std::string& name) {
  for (const auto& known : model::presets()) {
    if (known.name == name) return known.model;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(HfConfig, PublishedFilesGiveThePresets) {
  EXPECT_EQ(legal(kGpt2), preset("gpt2-124m"));
  ModelSpec llama = preset("llama-1b");
  llama.context = 131072;
  EXPECT_EQ(legal(kLlama1b), llama);
}

TEST(HfConfig, MissingKeysMeanWhatTheyMeanThere) {
  const ModelSpec model = legal(R"({"model_type": "llama", "vocab_size": 100, "max_position_embeddings": 64,
    "hidden_size": 48, "intermediate_size": 72, "num_hidden_layers": 2, "num_attention_heads": 6, "head_dim": null,
    "rope_scaling": null})");
  EXPECT_EQ(model.output_weights, OutputWeights::Untied);
  EXPECT_EQ(model.kv_heads, 0);
  EXPECT_EQ(model.norm_eps, 1e-6);
  EXPECT_EQ(model.rope_base, 10000);
  EXPECT_EQ(model.rope_scaling, RopeScaling::None);
  EXPECT_EQ(legal(replaced(kGpt2, "\"n_ctx\"", "\"n_inner\": 99, \"n_ctx\"")).ffn, 99);
  EXPECT_EQ(legal(replaced(kGpt2, "\"n_ctx\"", "\"tie_word_embeddings\": false, \"n_ctx\"")).output_weights,
            OutputWeights::Untied);
}

TEST(HfConfig, BothFormsOfRotaryParametersAreRead) {
  const std::string older = "\"rope_scaling\": {\"factor\": 32.0,";
  std::string newer = replaced(kLlama1b, older, "\"rope_parameters\": {\"rope_theta\": 500000.0, \"factor\": 32.0,");
  newer = replaced(newer, "\"rope_theta\": 500000.0, \"tie", "\"tie");
  EXPECT_EQ(legal(newer), legal(kLlama1b));
  EXPECT_EQ(legal(replaced(kLlama1b, "\"rope_type\"", "\"type\"")), legal(kLlama1b));
  ModelSpec plain = legal(kLlama1b);
  plain.rope_scaling = RopeScaling::None;
  plain.rope_factor = 8;
  EXPECT_EQ(legal(replaced(kLlama1b, "\"llama3\"", "\"default\"")), plain);
}

std::string with_rope(const std::string& rope) {
  return cat("{\"model_type\": \"llama\", ", kFigures, ", \"rope_scaling\": {", rope, "}}");
}

TEST(HfConfig, ScalingsOfRotaryPositions) {
  ModelSpec expected = of_type("llama", "");
  expected.rope_scaling = RopeScaling::Linear;
  expected.rope_factor = 4;
  EXPECT_EQ(legal(with_rope(R"("type": "linear", "factor": 4.0)")), expected);
  expected.rope_scaling = RopeScaling::Dynamic;
  expected.rope_context = expected.context;
  EXPECT_EQ(legal(with_rope(R"("rope_type": "dynamic", "factor": 4.0)")), expected);
  expected.rope_scaling = RopeScaling::Yarn;
  EXPECT_EQ(legal(with_rope(R"("rope_type": "yarn", "factor": 4.0)")), expected);
  expected.rope_context = 7;
  expected.rope_fast_turns = 48;
  expected.rope_slow_turns = 2;
  expected.rope_magnitude = 1.5;
  const std::string turns = R"("rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 7,
    "beta_fast": 48, "beta_slow": 2)";
  EXPECT_EQ(legal(with_rope(turns + R"(, "attention_factor": 1.5, "mscale": 1, "mscale_all_dim": 2)")), expected);
  // transformers 5.24 in float64
  expected.rope_factor = 40;
  expected.rope_magnitude =
      legal(with_rope(replaced(turns, ": 4,", ": 40,") + R"(, "mscale": 0.8, "mscale_all_dim": 0.5)")).rope_magnitude;
  EXPECT_DOUBLE_EQ(expected.rope_magnitude, 1.0934331941177564);
  EXPECT_EQ(complaint(with_rope(turns + R"(, "truncate": false)")),
            "c: rope_scaling.truncate = false: must be true, since braid computes nothing else; nearest valid is true");
  EXPECT_EQ(complaint(with_rope(R"("rope_type": "yarn")")), "c: rope_scaling.factor: must be given");
}

TEST(HfConfig, FamiliesOfLlamasShapeDifferInTheirHeads) {
  const ModelSpec llama = of_type("llama", "");
  EXPECT_EQ(llama.kv_heads, 0);
  ModelSpec mistral = llama;
  mistral.kv_heads = 8;
  mistral.window = 4096;
  EXPECT_EQ(of_type("mistral", ""), mistral);
  mistral.window = 0;
  mistral.kv_heads = 0;
  EXPECT_EQ(of_type("mistral", R"(, "sliding_window": null, "num_key_value_heads": null)"), mistral);
  mistral.window = 5;
  mistral.head_width = 6;
  EXPECT_EQ(of_type("mistral", R"(, "sliding_window": 5, "num_key_value_heads": null, "head_dim": 6)"), mistral);
  ModelSpec qwen = llama;
  qwen.kv_heads = 4;
  qwen.qkv_bias = true;
  EXPECT_EQ(of_type("qwen2", R"(, "num_key_value_heads": 4, "sliding_window": 7)"), qwen);
  qwen.qkv_bias = false;
  qwen.qk_norm = true;
  qwen.head_width = 128;
  EXPECT_EQ(of_type("qwen3", R"(, "num_key_value_heads": 4)"), qwen);
  qwen.head_width = 0;
  EXPECT_EQ(of_type("qwen3", R"(, "num_key_value_heads": 4, "head_dim": 3)"), qwen);
}

TEST(HfConfig, WindowsAreOfAllLayersOrOfNone) {
  const char* kUsed = R"(, "num_key_value_heads": 4, "sliding_window": 7, "use_sliding_window": true)";
  const auto window = [&](const std::string& more) { return of_type("qwen2", kUsed + more).window; };
  EXPECT_EQ(window(R"(, "max_window_layers": 0)"), 7);
  EXPECT_EQ(window(R"(, "max_window_layers": 2)"), 0);
  EXPECT_EQ(window(""), 0);
  EXPECT_EQ(window(R"(, "layer_types": ["sliding_attention", "sliding_attention"])"), 7);
  EXPECT_EQ(window(R"(, "layer_types": ["full_attention", "full_attention"])"), 0);
  EXPECT_EQ(complaint(cat("{\"model_type\": \"qwen2\", ", kFigures, kUsed, ", \"max_window_layers\": 1}")),
            "c: max_window_layers = 1: must be 0, or at least num_hidden_layers");
  EXPECT_EQ(complaint(cat("{\"model_type\": \"qwen3\", ", kFigures, kUsed,
                          R"(, "layer_types": ["sliding_attention", "full_attention"]})")),
            "c: layer_types = [\"sliding_attention\",\"full_attention\"]: must be the same of all layers");
  EXPECT_EQ(complaint(cat("{\"model_type\": \"mistral\", ", kFigures,
                          R"(, "num_key_value_heads": 4, "layer_types": ["full_attention", "sliding_attention"]})")),
            "c: layer_types = [\"full_attention\",\"sliding_attention\"]: must be the same of all layers");
}

TEST(HfConfig, WhatIsNotSupportedIsRefusedAllAtOnce) {
  std::string bad = replaced(kLlama1b, "\"silu\"", "\"gelu\"");
  bad = replaced(bad, "\"attention_bias\": false", "\"attention_bias\": true");
  bad = replaced(bad, "\"head_dim\": 64", "\"head_dim\": 0");
  bad = replaced(bad, "\"llama3\"", "\"longrope\"");
  bad = replaced(bad, "\"vocab_size\": 128256", "\"vocab_size\": \"many\"");
  bad = replaced(bad, "\"num_hidden_layers\": 16,", "");
  EXPECT_EQ(complaint(bad),
            "c: vocab_size = \"many\": must be an integer, at least 1\n"
            "c: num_hidden_layers: must be given\n"
            "c: head_dim = 0: must be an integer, at least 1\n"
            "c: hidden_act = \"gelu\": must be one of \"silu\", \"swish\"; nearest valid is \"silu\"\n"
            "c: attention_bias = true: must be false, since braid computes nothing else; nearest valid is false\n"
            "c: rope_scaling.rope_type = \"longrope\": must be one of \"llama3\", \"linear\", \"dynamic\", \"yarn\", "
            "\"default\"; nearest valid is \"llama3\"");
  EXPECT_EQ(complaint(replaced(kGpt2, "\"gelu_new\"", "\"relu\"")),
            "c: activation_function = \"relu\": must be one of \"gelu_new\", \"gelu_pytorch_tanh\"; nearest valid is "
            "\"gelu_new\"");
  EXPECT_EQ(
      complaint(replaced(kGpt2, "\"n_ctx\"", "\"scale_attn_by_inverse_layer_idx\": true, \"n_ctx\"")),
      "c: scale_attn_by_inverse_layer_idx = true: must be false, since braid computes nothing else; nearest valid "
      "is false");
  EXPECT_EQ(complaint(replaced(kGpt2, "\"n_ctx\"", "\"quantization_config\": {\"bits\": 4}, \"n_ctx\"")),
            "c: quantization_config = {\"bits\":4}: must not be there: braid reads weights of no such kind");
}

// mistralai/Mixtral-8x7B-v0.1 leaves nothing out that counts; Qwen3-30B-A3B has layers without experts by name only.
TEST(HfConfig, ExpertsAreReadToBePlanned) {
  const ModelSpec mixtral = of_type("mixtral", R"(, "num_local_experts": 8, "num_experts_per_tok": 2,
      "num_key_value_heads": 8, "sliding_window": null)");
  EXPECT_EQ(mixtral.experts, 8);
  EXPECT_EQ(mixtral.experts_per_token, 2);
  EXPECT_EQ(mixtral.ffn, 72);
  EXPECT_EQ(mixtral.window, 0);
  const char* const kMoe =
      R"(, "num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 24, "head_dim": 128,
      "num_key_value_heads": 4, "mlp_only_layers": [], "decoder_sparse_step": 1)";
  const ModelSpec qwen = of_type("qwen3_moe", kMoe);
  EXPECT_EQ(qwen.experts, 16);
  EXPECT_EQ(qwen.experts_per_token, 4);
  EXPECT_EQ(qwen.ffn, 24);
  EXPECT_TRUE(qwen.qk_norm);
  const std::string some = replaced(kMoe, "\"mlp_only_layers\": []", "\"mlp_only_layers\": [0]");
  EXPECT_EQ(complaint(cat("{\"model_type\": \"qwen3_moe\", ", kFigures, some, "}")),
            "c: mlp_only_layers = [0]: must be [], since braid computes nothing else; nearest valid is []");
}

TEST(HfConfig, WhatIsNoConfigIsSaidSo) {
  EXPECT_EQ(complaint("{"), "c:1: is not JSON: unexpected end of input; expected string literal");
  EXPECT_EQ(complaint(""), "c:1: is not JSON: it is empty");
  EXPECT_EQ(complaint("{\n\"a\": 1,\n\"b\": tru}"), "c:3: is not JSON: invalid literal");
  EXPECT_EQ(complaint("[1]"), "c: must hold a JSON object");
  EXPECT_EQ(complaint("{}"),
            "c: model_type: must be given, one of \"gpt2\", \"llama\", \"mistral\", \"qwen2\", \"qwen3\", "
            "\"mixtral\", \"qwen3_moe\", \"bert\", \"gemma2\"");
  EXPECT_EQ(complaint(R"({"model_type": "mamba"})"),
            "c: model_type = \"mamba\": must be one of \"gpt2\", \"llama\", \"mistral\", \"qwen2\", \"qwen3\", "
            "\"mixtral\", \"qwen3_moe\", \"bert\", \"gemma2\"; nearest valid is \"gpt2\"");
  EXPECT_EQ(complaint(replaced(kGpt2, "\"n_layer\": 12", "\"n_layer\": 12.5")),
            "c: n_layer = 12.5: must be an integer, at least 1");
  EXPECT_EQ(complaint(replaced(kGpt2, "\"n_layer\": 12", "\"n_layer\": 99999999999999999999")),
            "c: n_layer = 1e+20: must be an integer, at least 1");
  EXPECT_EQ(complaint(replaced(kGpt2, "1e-05", "-1")), "c: layer_norm_epsilon = -1: must be a number more than 0");
  EXPECT_EQ(complaint(replaced(kLlama1b, "\"mlp_bias\": false", "\"mlp_bias\": 1")),
            "c: mlp_bias = 1: must be false, since braid computes nothing else; nearest valid is false");
}

// A file cut anywhere is an error or a legal model, never a crash.
TEST(HfConfig, EveryPrefixAndEveryLostByteIsSurvived) {
  const std::string whole = kLlama1b;
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NE(complaint(whole.substr(0, i)), "accepted") << i;
    complaint(whole.substr(0, i) + whole.substr(i + 1));
    std::string damaged = whole;
    damaged[i] = '\xff';
    complaint(damaged);
  }
}

class HfConfigFile : public testing::Test {
 protected:
  HfConfigFile() { std::ofstream(path_) << kLlama1b; }
  ~HfConfigFile() override { std::remove(path_.c_str()); }
  const std::string path_ = testing::TempDir() + "braid_hf_config_test.json";
};

TEST_F(HfConfigFile, KeysOfTheRunWinAndTheRunNoLongerNeedsTheFile) {
  const std::string toml = "data.paths = [\"corpus.txt\"]\n[model]\nconfig = " + toml_text(path_) + "\ncontext = 512\n";
  const RunSpec run = parse_run(toml, "run.toml", {"model.vocab=300"});
  EXPECT_EQ(run.model.config, "");
  EXPECT_EQ(run.model.context, 512);
  EXPECT_EQ(run.model.vocab, 300);
  EXPECT_EQ(run.model.rope_factor, 32);
  std::remove(path_.c_str());
  EXPECT_EQ(parse_run(to_toml(run), "printed", {}), run);
  try {
    parse_run(toml, "run.toml", {});
    FAIL() << "the file is gone";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u) << error.what();
    EXPECT_EQ(error.problems()[0].key, "model.config");
  }
}

TEST(HfConfig, RepeatedKeysAndANulAreRefused) {
  using namespace std::string_literals;
  EXPECT_EQ(complaint("{\"model_type\": \"gpt2\",\n\"model_type\": \"llama\"}"),
            "c:2: has the key \"model_type\" twice in one object");
  EXPECT_EQ(complaint("{\"model_type\": \"gpt2\"}\0{}"s), "c:1: is not JSON: it has a NUL");
}

// Qwen2Config has no attention_bias: queries, keys and values have biases whatever it says.
TEST(HfConfig, KeysThatTheClassDoesNotReadAreNotLookedAt) {
  std::string qwen = replaced(kLlama1b, "\"model_type\": \"llama\"", "\"model_type\": \"qwen2\"");
  const ModelSpec want = legal(qwen);
  qwen = replaced(qwen, "\"attention_bias\": false", "\"attention_bias\": true");
  EXPECT_EQ(legal(replaced(qwen, "\"mlp_bias\": false", "\"mlp_bias\": true")), want);
  const std::string mistral = replaced(kLlama1b, "\"model_type\": \"llama\"", "\"model_type\": \"mistral\"");
  EXPECT_EQ(legal(replaced(mistral, "\"attention_bias\": false", "\"attention_bias\": true")), legal(mistral));
  const std::string qwen3 = replaced(kLlama1b, "\"model_type\": \"llama\"", "\"model_type\": \"qwen3\"");
  EXPECT_NE(complaint(replaced(qwen3, "\"attention_bias\": false", "\"attention_bias\": true")), "accepted");
  EXPECT_EQ(legal(replaced(qwen3, "\"mlp_bias\": false", "\"mlp_bias\": true")), legal(qwen3));
}

}  // namespace
}  // namespace braid::spec::hf_config_test
