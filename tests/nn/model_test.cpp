// The models that presets name: as many parameters as published, frequencies as in Hugging Face's model.
#include "braid/nn/model.h"

#include <gtest/gtest.h>

#include <map>

#include "braid/model/preset.h"
#include "braid/nn/rotary.h"

namespace braid::nn::model_test {
namespace {

// Sums of what the published checkpoints hold.
TEST(Presets, HaveAsManyParametersAsPublished) {
  const std::map<std::string, int64_t> published = {
      {"gpt2-124m", 124439808}, {"gpt2-350m", 354823168}, {"gpt2-774m", 774030080}, {"gpt2-1.5b", 1557611200},
      {"llama-1b", 1235814400}, {"llama-3b", 3212749824}, {"llama-8b", 8030261248}, {"tinyllama-1.1b", 1100048384}};
  size_t seen = 0;
  for (const auto& preset : model::presets()) {
    if (!published.contains(preset.name)) continue;
    EXPECT_EQ(count_params(preset.model), published.at(preset.name)) << preset.name;
    ++seen;
  }
  EXPECT_EQ(seen, published.size());
}

// Values of Llama-3.2-1B, by transformers' ROPE_INIT_FUNCTIONS["llama3"] in float32: wavelengths that stay, are
// between, are divided.
TEST(Rotary, FrequenciesAreThoseOfLlama3) {
  const auto frequencies = rotary_frequencies({64, 8192, 500000, {{32, 1, 4, 8192}}});
  ASSERT_EQ(frequencies.size(), 32u);
  const std::map<int, double> expected = {{0, 1.0},
                                          {1, 0.663601279258728},
                                          {13, 0.00483942124992609},
                                          {14, 0.0032114461064338684},
                                          {15, 0.0012905480107292533},
                                          {16, 0.000429556705057621},
                                          {17, 9.708286233944818e-05},
                                          {18, 1.9461638657958247e-05},
                                          {31, 9.418306490260875e-08}};
  for (const auto& [i, frequency] : expected) EXPECT_NEAR(frequencies[i], frequency, 2e-6 * frequency) << i;
}

}  // namespace
}  // namespace braid::nn::model_test
