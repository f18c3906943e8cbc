// Frequencies of rotary positions, as in Hugging Face's models.
#include <gtest/gtest.h>

#include <map>

#include "braid/nn/rotary.h"

namespace braid::nn::rotary_frequencies_test {
namespace {

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
}  // namespace braid::nn::rotary_frequencies_test
