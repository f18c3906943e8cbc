// Operations per token against counts made by hand.
#include "braid/model/model_flops.h"

#include <gtest/gtest.h>

#include <cmath>

namespace braid::model::model_flops_test {
namespace {

ModelSpec gpt2_124m() {
  ModelSpec spec;
  spec.layers = 12;
  spec.heads = 12;
  spec.width = 768;
  spec.context = 1024;
  spec.vocab = 50257;
  return spec;
}

// Without kv_heads: each head has its own keys and values.
ModelSpec small_llama() {
  ModelSpec spec;
  spec.family = ModelFamily::Llama;
  spec.layers = 3;
  spec.heads = 8;
  spec.width = 64;
  spec.ffn = 160;
  spec.context = 32;
  spec.vocab = 100;
  return spec;
}

// A block of GPT-2: 768 x 2304 for query, key and value, 768 x 768 out of attention, 768 x 3072 twice: 7,077,888
// weights. Twelve of them and a head of 768 x 50257: 123,532,032. Attention: 768 multiply-adds with each of 512 keys,
// and again with the values, in twelve blocks: 9,437,184.
TEST(ModelFlops, Gpt2ByHand) {
  EXPECT_EQ(model_flops_per_token(gpt2_124m()), 6.0 * 123532032 + 6.0 * 9437184);
  EXPECT_EQ(model_flops_per_token(gpt2_124m()), 797815296.0);
}

TEST(ModelFlops, ATiedHeadCostsWhatAnUntiedOneDoes) {
  ModelSpec spec = gpt2_124m();
  spec.output_weights = OutputWeights::Untied;
  EXPECT_EQ(model_flops_per_token(spec), model_flops_per_token(gpt2_124m()));
}

TEST(ModelFlops, PaddingIsNoWork) {
  ModelSpec spec = gpt2_124m();
  spec.vocab_multiple = 1024;
  EXPECT_EQ(model_flops_per_token(spec), model_flops_per_token(gpt2_124m()));
}

// 8 heads of 8, sharing 2 pairs of key and value: 64 x 64 twice and 64 x 16 twice, then three of 64 x 160: 40,960. The
// head: 64 x 100. Attention asks for all 8 heads: 64 x 2 for each of 16 keys.
TEST(ModelFlops, SharedKeysAndGatesByHand) {
  ModelSpec spec = small_llama();
  spec.kv_heads = 2;
  EXPECT_EQ(model_flops_per_token(spec), 6.0 * (3 * (8192 + 2048 + 30720) + 6400 + 3 * 64 * 2 * 16));
}

// Heads of 16: queries and projection of 64 x 128 twice, keys and values of 64 x 32 twice; scores of 8 x 16. A window
// of 8 in 32 tokens: 8 x 9 / 2 from the first eight, 8 from each other, as a mean of 7 (without the half of its own
// token).
TEST(ModelFlops, WideHeadsAndWindowsByHand) {
  ModelSpec spec = small_llama();
  spec.kv_heads = 2;
  spec.head_width = 16;
  const double weights = 3 * (16384 + 4096 + 30720) + 6400;
  EXPECT_EQ(model_flops_per_token(spec), 6.0 * (weights + 3 * 128 * 2 * 16));
  spec.window = 8;
  EXPECT_EQ(model_flops_per_token(spec), 6.0 * (weights + 3 * 128 * 2 * 7));
  spec.window = 32;
  EXPECT_EQ(model_flops_per_token(spec), 6.0 * (weights + 3 * 128 * 2 * 16));
}

// A router of 64 x 8, and three of 64 x 160 for each of the token's two experts.
TEST(ModelFlops, OfExpertsThoseOfTheToken) {
  ModelSpec spec = small_llama();
  spec.experts = 8;
  spec.experts_per_token = 2;
  EXPECT_EQ(model_flops_per_token(spec), 6.0 * (3 * (4 * 4096 + 512 + 2 * 30720) + 6400 + 3 * 64 * 2 * 16));
}

TEST(ModelFlops, UtilisationIsWorkOverPeak) {
  EXPECT_DOUBLE_EQ(model_flop_utilisation(1000, 4000), 0.25);
  EXPECT_TRUE(std::isnan(model_flop_utilisation(1000, 0)));
}

}  // namespace
}  // namespace braid::model::model_flops_test
