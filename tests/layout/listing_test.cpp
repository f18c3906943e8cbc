// The list of a model's ops, and the sums between tensor ranks, by hand.
#include "braid/layout/listing.h"

#include <gtest/gtest.h>

#include "braid/base/text.h"

namespace braid::layout::listing_test {
namespace {

using braid::operator<<;

ModelSpec qwen() {
  return {.family = ModelFamily::Llama,
          .layers = 3,
          .heads = 4,
          .kv_heads = 2,
          .width = 32,
          .qk_norm = true,
          .ffn = 48,
          .context = 16,
          .vocab = 19};
}

TEST(Listing, SumsFollowFromTheLetters) {
  std::string text;
  for (const ListedSum& sum : listing_of(qwen(), {.tokens = 16, .tensor = 2}).sums) {
    text += cat(sum.block, " ", sum.param, " ", word(sum.pass), " ", sum.elements, "\n");
  }
  EXPECT_EQ(text,
            "embedding wte.weight forward 512\n"
            "blocks.0 attention.qkv.weight backward 512\n"
            "blocks.0 attention.norm_q.weight backward 8\n"
            "blocks.0 attention.norm_k.weight backward 8\n"
            "blocks.0 attention.projection.weight forward 512\n"
            "blocks.0 mlp.gate_up.weight backward 512\n"
            "blocks.0 mlp.down.weight forward 512\n"
            "head wte.weight backward 512\n");
  EXPECT_TRUE(listing_of(qwen(), {.tokens = 16}).sums.empty());
}

// The bytes that ops keep add up to those of the account.
TEST(Listing, OpsAddUpToTheAccount) {
  const SharingRanks ranks{.tokens = 16, .tensor = 2, .between = Sequence::Split};
  const ModelAccount account = account_of(qwen());
  const RankExtents rank = rank_extents(account, ranks);
  double elements = 0, floats = 0;
  for (const ListedOp& op : listing_of(qwen(), ranks).ops) {
    if (op.block != "blocks.0") continue;
    elements += op.kept_elements;
    floats += op.kept_floats;
  }
  EXPECT_EQ(elements, account.attention.everything.elements.at(rank) + account.feed.everything.elements.at(rank));
  EXPECT_EQ(floats, account.attention.everything.floats.at(rank) + account.feed.everything.floats.at(rank));
}

}  // namespace
}  // namespace braid::layout::listing_test
