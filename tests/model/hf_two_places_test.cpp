// Values that may stand in two places of a config.json: the places must agree.
#include "tests/model/hf_configs.h"

namespace braid::model::hf_two_places_test {
namespace {

using namespace hf_configs;

// transformers takes one of two places in silence.
TEST(HfTwoPlaces, WhatStandsInTwoPlacesMustBeEqual) {
  const std::string tail = "\"rope_theta\": 500000.0";
  const auto with = [&](const std::string& more) { return replaced(kLlama1b, tail, tail + ", " + more); };
  EXPECT_EQ(
      complaint(with(R"("rope_parameters": {"rope_type": "default", "rope_theta": 500000.0})")),
      "c: rope_scaling.rope_type = \"llama3\": must be equal to c: rope_parameters.rope_type, which is \"default\"");
  EXPECT_EQ(complaint(with(R"("rope_parameters": {"rope_type": "llama3", "factor": 8.0, "high_freq_factor": 4.0,
      "low_freq_factor": 1.0, "original_max_position_embeddings": 12, "rope_theta": 10000.0})")),
            "c: rope_theta = 500000.0: must be equal to c: rope_parameters.rope_theta, which is 10000.0\n"
            "c: rope_scaling.factor = 32.0: must be equal to c: rope_parameters.factor, which is 8.0\n"
            "c: rope_scaling.original_max_position_embeddings = 8192: must be equal to c: "
            "rope_parameters.original_max_position_embeddings, which is 12");
  EXPECT_EQ(legal(with(R"("rope_parameters": {"rope_type": "llama3", "factor": 32, "high_freq_factor": 4.0,
      "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_theta": 5e5})")),
            legal(kLlama1b));
  EXPECT_EQ(complaint(with(R"("original_max_position_embeddings": 40)")),
            "c: original_max_position_embeddings = 40: must be equal to c: "
            "rope_scaling.original_max_position_embeddings, which is 8192");
  EXPECT_EQ(legal(with(R"("original_max_position_embeddings": 8192)")), legal(kLlama1b));
  const std::string inside = "\"original_max_position_embeddings\": 8192, \"rope_type\"";
  EXPECT_EQ(legal(replaced(with(R"("original_max_position_embeddings": 8192)"), inside, "\"rope_type\"")),
            legal(kLlama1b))
      << "the top alone";
  EXPECT_EQ(
      complaint(replaced(kLlama1b, "\"rope_type\": \"llama3\"", "\"rope_type\": \"llama3\", \"type\": \"default\"")),
      "c: rope_scaling.type = \"default\": must be equal to c: rope_scaling.rope_type, which is \"llama3\"");
  EXPECT_EQ(complaint(with(R"("partial_rotary_factor": 0.5)")),
            "c: partial_rotary_factor = 0.5: must be 1.0, since braid computes nothing else; nearest valid is 1.0");
}

// The attribute_map of GPT2Config.
TEST(HfTwoPlaces, SizesHaveTwoNames) {
  EXPECT_EQ(complaint(replaced(kGpt2, "\"n_embd\": 768", "\"n_embd\": 768, \"hidden_size\": 96")),
            "c: hidden_size = 96: must be equal to c: n_embd, which is 768");
  EXPECT_EQ(legal(replaced(kGpt2, "\"n_embd\": 768", "\"n_embd\": 768, \"hidden_size\": 768")), legal(kGpt2));
  EXPECT_EQ(legal(replaced(kGpt2, "\"n_layer\": 12", "\"num_hidden_layers\": 12")), legal(kGpt2));
}

// The attribute_map of MixtralConfig.
TEST(HfTwoPlaces, ExpertsHaveTwoNames) {
  const std::string more = R"(, "num_experts_per_tok": 2, "num_key_value_heads": 8, "num_local_experts": 8)";
  const auto mixtral = [&](const std::string& experts) {
    return cat("{\"model_type\": \"mixtral\", ", kFigures, more, ", ", experts, "}");
  };
  EXPECT_EQ(complaint(mixtral("\"num_experts\": 16")),
            "c: num_experts = 16: must be equal to c: num_local_experts, which is 8");
  EXPECT_EQ(legal(mixtral("\"num_experts\": 8")).experts, 8);
  EXPECT_EQ(legal(replaced(mixtral("\"x\": 0"), "num_local_experts", "num_experts")).experts, 8);
}

// transformers 5 writes "dtype"; older releases write "torch_dtype".
TEST(HfTwoPlaces, TypesHaveTwoNames) {
  const auto with = [](const std::string& type) {
    return replaced(kLlama1b, "\"torch_dtype\"", cat("\"dtype\": ", type, ", \"torch_dtype\""));
  };
  EXPECT_EQ(complaint(with("\"float32\"")),
            "c: torch_dtype = \"bfloat16\": must be equal to c: dtype, which is \"float32\"");
  EXPECT_EQ(legal(with("\"bfloat16\"")), legal(kLlama1b));
}

}  // namespace
}  // namespace braid::model::hf_two_places_test
