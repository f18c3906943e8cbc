// Counts of a layer against the same counts by hand.
#include "braid/layout/account.h"

#include <gtest/gtest.h>

#include "braid/model/block_builder.h"
#include "braid/model/families.h"

namespace braid::layout::account_test {
namespace {

// Four heads of eight features share two pairs of keys and values: q = 32, kv = 16.
ModelSpec qwen() {
  return {.family = ModelFamily::Llama,
          .layers = 3,
          .heads = 4,
          .kv_heads = 2,
          .width = 32,
          .qkv_bias = true,
          .ffn = 48,
          .context = 16,
          .vocab = 19};
}

// A rank of two tensor ranks under sequence parallelism, with 16 tokens.
RankExtents half_of(const ModelAccount& account) {
  return rank_extents(account, {.tokens = 16, .tensor = 2, .between = Sequence::Split});
}

TEST(Account, WorkOfALayerByHand) {
  const ModelAccount account = account_of(qwen());
  const RankExtents rank = half_of(account);
  ASSERT_EQ(account.parts[0].products.size(), 2u);
  const ProductCount& qkv = account.parts[0].products[0];
  EXPECT_EQ(qkv.rows.at(rank), 16);
  EXPECT_EQ(qkv.in.at(rank.all), 32);
  EXPECT_EQ(qkv.out.at(rank.all), (32 + 2 * 16) / 2);
  // A norm and a residual on 8 tokens; on 16, rotary positions and the gather of half of the heads.
  const double between = 8 * 32, rotary = 16 * 2 * (32 + 16) / 2, gather = 16 * 2 * 32 / 2;
  EXPECT_EQ(account.parts[0].forward.at(rank), 5 * between + rotary + gather);
  const double biases = 16 * (32 + 2 * 16) / 2;
  EXPECT_EQ(account.parts[0].backward.at(rank), 6 * between + rotary + gather + biases);
  EXPECT_EQ(account.parts[0].recomputed.at(rank), 2 * between);
  EXPECT_EQ(account.parts[1].forward.at(rank), 5 * between + 3 * 16 * 48 / 2);
  EXPECT_EQ(account.parts[1].backward.at(rank), 6 * between + 5 * 16 * 48 / 2);
  EXPECT_EQ(account.parts[1].recomputed.at(rank), 2 * between + 3 * 16 * 48 / 2);
  EXPECT_EQ(account.parts[0].attention_flops.at(rank.all), 4 * 16 * 8 * 32 / 2) << "a token sees 8 of 16";
}

TEST(Account, MemoryOfALayerByHand) {
  const ModelAccount account = account_of(qwen());
  const RankExtents rank = half_of(account);
  const double hidden = 8 * 32, qkv = 16 * 64 / 2, heads = 16 * 32 / 2, inner = 16 * 2 * 48 / 2, activated = inner / 2;
  EXPECT_EQ(account.parts[0].everything.elements.at(rank), 2 * hidden + qkv + heads);
  EXPECT_EQ(account.parts[0].selected.elements.at(rank), hidden + qkv);
  EXPECT_EQ(account.parts[0].everything.floats.at(rank), 8 + 16 * 4 / 2) << "a number of each token, and of each head";
  EXPECT_EQ(account.parts[0].pending.elements.at(rank), 4 * hidden + qkv + heads) << "of all tokens, gathered";
  EXPECT_EQ(account.parts[0].tables.at(rank.all), 16 * 8);
  EXPECT_EQ(account.parts[1].everything.elements.at(rank), 2 * hidden + inner + activated);
  EXPECT_EQ(account.parts[1].selected.elements.at(rank), hidden + inner);
  EXPECT_EQ(account.parts[1].masked.at(rank), 0) << "without dropout";
}

// Biases of experts are summed over the rows of both experts of a token.
TEST(Account, BiasesOfExpertsAreOfTheirRows) {
  ModelSpec spec{
      .layers = 2, .heads = 4, .width = 32, .experts = 8, .experts_per_token = 2, .context = 16, .vocab = 19};
  const auto backward = [&] {
    const ModelAccount account = account_of(spec);
    return account.parts[1].backward.at(half_of(account));
  };
  const double routed = backward();
  spec.experts_per_token = 1;
  const double tokens = 8, h = 32, f = 16 * 128 / 2;
  // Dispatch and combine, the activation, both biases.
  EXPECT_EQ(routed - backward(), tokens * h * (2 + 1) + 3 * f + f + tokens * h);
}

TEST(Account, ANumberIsOneElement) {
  const ModelSpec spec = qwen();
  model::FamilyBlocks blocks = model::family_of(spec).blocks;
  blocks.layer = [](const ModelSpec& of) {
    return model::BlockBuilder(of, "btc").opaque(nullptr, "btc", {{"scale", ""}}).join().build();
  };
  const ModelAccount account = account_of(spec, model::graph_of(spec, blocks));
  ASSERT_EQ(account.parts[0].params.size(), 1u);
  const ParamCount& scale = account.parts[0].params[0];
  EXPECT_EQ(scale.rows.at(account.of_token), 1);
  EXPECT_EQ(scale.columns.at(account.of_token), 1);
}

}  // namespace
}  // namespace braid::layout::account_test
