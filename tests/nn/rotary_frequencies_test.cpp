// Frequencies of rotary positions, as in Hugging Face's models, and the angles of cached tokens.
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <map>

#include "braid/nn/rotary.h"

namespace braid::nn::rotary_frequencies_test {
namespace {

using Expected = std::map<int, double>;

void expect_frequencies(const RotaryOptions& options, int64_t length, const Expected& expected, double tolerance) {
  const auto frequencies = rotary_frequencies(options, length);
  ASSERT_EQ(frequencies.size(), 32u);
  for (const auto& [i, frequency] : expected) EXPECT_NEAR(frequencies[i], frequency, tolerance * frequency) << i;
}

// Values of Llama-3.2-1B, by transformers' ROPE_INIT_FUNCTIONS["llama3"] in float32: wavelengths that stay, are
// between, are divided.
TEST(Rotary, FrequenciesAreThoseOfLlama3) {
  expect_frequencies({64, 8192, 500000, {.kind = RopeScaling::Llama3, .factor = 32}}, 8192,
                     {{0, 1.0},
                      {1, 0.663601279258728},
                      {13, 0.00483942124992609},
                      {14, 0.0032114461064338684},
                      {15, 0.0012905480107292533},
                      {16, 0.000429556705057621},
                      {17, 9.708286233944818e-05},
                      {18, 1.9461638657958247e-05},
                      {31, 9.418306490260875e-08}},
                     2e-6);
}

// The values below are by transformers 5.24, ROPE_INIT_FUNCTIONS with its float32 replaced by float64.
constexpr double kFloat64 = 1e-14;

TEST(Rotary, LinearScalingDividesAllFrequencies) {
  expect_frequencies({64, 8192, 10000, {.kind = RopeScaling::Linear, .factor = 4}}, 8192,
                     {{0, 0.25},
                      {1, 0.18747355233311397},
                      {9, 0.018747355233311395},
                      {20, 0.0007905694150420947},
                      {31, 3.33380358040831e-05}},
                     kFloat64);
}

TEST(Rotary, DynamicScalingRaisesTheBaseOfLongSequences) {
  const RotaryOptions options{64, 8192, 10000, {.kind = RopeScaling::Dynamic, .factor = 4, .context = 2048}};
  for (const int64_t length : {1, 2048}) {
    expect_frequencies(options, length,
                       {{0, 1.0}, {1, 0.7498942093324559}, {20, 0.003162277660168379}, {31, 0.0001333521432163324}},
                       kFloat64);
  }
  expect_frequencies(options, 5000,
                     {{0, 1.0},
                      {1, 0.7050434357346549},
                      {9, 0.04304699711922235},
                      {20, 0.0009211226667426841},
                      {31, 1.971024749617846e-05}},
                     kFloat64);
}

TEST(Rotary, YarnInterpolatesSlowPairs) {
  expect_frequencies({64, 8192, 10000, {.kind = RopeScaling::Yarn, .factor = 4, .context = 2048}}, 8192,
                     {{0, 1.0},
                      {5, 0.23713737056616555},
                      {9, 0.0706631081870968},
                      {13, 0.016873235982592546},
                      {16, 0.005384615384615384},
                      {20, 0.0009730085108210396},
                      {25, 0.00018747355233311394},
                      {31, 3.33380358040831e-05}},
                     kFloat64);
  const RotaryScaling other{
      .kind = RopeScaling::Yarn, .factor = 40, .context = 4096, .fast_turns = 48, .slow_turns = 2};
  expect_frequencies({64, 8192, 500000, other}, 8192,
                     {{5, 0.12868737343265052},
                      {9, 0.01684490085262712},
                      {13, 0.0011695268252156406},
                      {16, 3.535533905932737e-05},
                      {31, 7.534645380347927e-08}},
                     kFloat64);
}

TEST(Rotary, MagnitudeOfYarnIsItsFactorsUnlessGiven) {
  ModelSpec spec;
  spec.rope_factor = 4;
  EXPECT_EQ(rotary_options(spec).scaling.magnitude, 1);
  spec.rope_scaling = RopeScaling::Yarn;
  EXPECT_DOUBLE_EQ(rotary_options(spec).scaling.magnitude, 1.138629436111989);
  spec.rope_magnitude = 0.5;
  EXPECT_EQ(rotary_options(spec).scaling.magnitude, 0.5);
}

// The first sequence has 6 cached tokens and gets 2, the second gets its first 3.
TEST(Rotary, TokensOfACacheAreTurnedAsInSequencesOfTheirLength) {
  for (const RopeScaling kind : {RopeScaling::Yarn, RopeScaling::Dynamic}) {
    const RotaryOptions options{8, 16, 100, {.kind = kind, .factor = 4, .context = 4, .magnitude = 1.5}};
    const auto type = at::dtype(at::kDouble);
    const Rotary rotary(options, type);
    KeyValueCache cache(2, 16);
    cache.begin({{0, 6}});
    cache.end();
    cache.begin({{0, 2}, {1, 3}});
    const at::Tensor first = at::randn({1, 8, 16}, type), second = at::randn({1, 3, 16}, type);
    const at::Tensor x = at::empty({1, 5, 16}, type);
    x.narrow(1, 0, 2).copy_(first.narrow(1, 6, 2));
    x.narrow(1, 2, 3).copy_(second);
    rotary.rotate_cached_(x, 2, cache);
    rotary.rotate_(first, 2), rotary.rotate_(second, 2);
    EXPECT_TRUE(x.narrow(1, 0, 2).equal(first.narrow(1, 6, 2)));
    EXPECT_TRUE(x.narrow(1, 2, 3).equal(second));
  }
}

}  // namespace
}  // namespace braid::nn::rotary_frequencies_test
