// The list of a model's ops, and the sums between tensor ranks, by hand.
#include "braid/layout/listing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/base/text.h"
#include "braid/model/families.h"
#include "braid/model/trained.h"

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
  for (const ListedCollective& sum : listing_of(qwen(), {.tokens = 16, .tensor = 2}).collectives) {
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
  EXPECT_TRUE(listing_of(qwen(), {.tokens = 16}).collectives.empty());
}

// Keys and values of a head of 8 features by 32 inputs, which two ranks hold.
TEST(Listing, GradientsOfCopiedKeyHeadsAreSummed) {
  std::vector<double> elements;
  for (const ListedCollective& sum : listing_of(qwen(), {.tokens = 16, .tensor = 4}).collectives) {
    if (sum.param == "attention.qkv.weight") elements.push_back(sum.elements);
  }
  EXPECT_EQ(elements, (std::vector<double>{512, 2 * 8 * 32}));
}

TEST(Listing, EachKindOfLayerIsListedAndCounted) {
  ModelSpec spec = qwen();
  spec.family = ModelFamily::Gemma2, spec.qk_norm = false, spec.window = 4;
  std::string text, block;
  for (const ListedOp& op : listing_of(spec, {.tokens = 16}).ops) {
    if (op.block != block) text += cat(op.block, " ", op.count, "\n");
    block = op.block;
  }
  EXPECT_EQ(text, "embedding 1\nblocks.0 2\nblocks.1 1\nhead 1\n");
}

TEST(Listing, AMaskedHeadHasThePickedTokens) {
  const ModelSpec spec{.family = ModelFamily::Bert, .layers = 1, .heads = 4, .width = 32, .context = 16, .vocab = 19};
  const Listing listing = listing_of(spec, {.tokens = 32, .sequences = 2}, 3.0 / 16);
  const auto picks = std::ranges::find(listing.ops, "pick rows", &ListedOp::kind);
  ASSERT_NE(picks, listing.ops.end());
  EXPECT_EQ(picks->shape, (std::vector<int64_t>{2, 3, 32}));
}

// Elements of a call, by hand: 16 tokens of this rank and as many of another one; 2 x 32 features of keys and values,
// of which a tensor rank has half; each token goes to 2 experts.
TEST(Listing, TokensMoveBetweenContextAndExpertRanks) {
  ModelSpec spec = qwen();
  spec.experts = 4, spec.experts_per_token = 2;
  std::string text;
  for (const ListedCollective& call :
       listing_of(spec, {.tokens = 16, .tensor = 2, .expert = 2, .context = 2}).collectives) {
    if (call.axis == mesh::Axis::Tensor) continue;
    text += cat(word(call.kind), " over ", mesh::text(call.axis), " ", call.param, " ", word(call.pass), " ",
                call.times, " x ", call.elements, "\n");
  }
  EXPECT_EQ(text,
            "send-receive over context attention forward 1 x 256\n"  // half of queries, keys and values
            "send-receive over context attention backward 1 x 256\n"
            "send-receive over context attention forward 1 x 128\n"  // half of the outputs
            "send-receive over context attention backward 1 x 128\n"
            "send-receive over context attention forward 1 x 256\n"  // keys and values
            "send-receive over context attention backward 3 x 256\n"
            "all-to-all over expert dispatch forward 1 x 1024\n"
            "all-to-all over expert dispatch backward 1 x 1024\n"
            "all-to-all over expert combine forward 1 x 1024\n"
            "all-to-all over expert combine backward 1 x 1024\n");
}

// The bytes that ops keep, and their sums over tensor ranks, add up to those of the account, with frozen parameters
// too.
void expect_account(const char* frozen, TensorSums sums) {
  using Kind = ListedCollective::Kind;
  using Pass = ListedCollective::Pass;
  const SharingRanks ranks{.tokens = 16, .tensor = 2, .between = Sequence::Split, .sums = sums};
  const auto is_frozen = [&](const std::string& name) { return *frozen && name.find(frozen) != std::string::npos; };
  const model::ModelGraph graph = model::with_frozen(model::graph_of(qwen()), is_frozen);
  const ModelAccount account = account_of(qwen(), graph, 1, sums);
  const RankExtents rank = rank_extents(account, ranks);
  const Listing listing = listing_of(qwen(), graph, ranks);
  double elements = 0, floats = 0;
  for (const ListedOp& op : listing.ops) {
    if (op.block != "blocks.0") continue;
    elements += op.kept_elements;
    floats += op.kept_floats;
  }
  const PartAccount &first = account.parts[0], &second = account.parts[1];
  EXPECT_EQ(elements, first.everything.elements.at(rank) + second.everything.elements.at(rank));
  EXPECT_EQ(floats, first.everything.floats.at(rank) + second.everything.floats.at(rank));
  int forward = 0, backward = 0, in_float = 0;
  for (const ListedCollective& call : listing.collectives) {
    if (call.kind != Kind::ReduceScatter || call.block != "blocks.0") continue;
    (call.pass == Pass::Forward ? forward : backward) += 1;
    in_float += call.pass == Pass::Forward && call.in_float ? 1 : 0;
  }
  EXPECT_EQ(forward, first.forward_sums + second.forward_sums);
  EXPECT_EQ(backward, first.backward_sums + second.backward_sums);
  EXPECT_EQ(in_float, first.float_sums + second.float_sums);
  EXPECT_EQ(in_float, sums == TensorSums::ByValue ? forward : 0);
}

TEST(Listing, OpsAddUpToTheAccount) {
  for (const char* frozen : {"", "weight", "qkv", "norm", "mlp", "w", "projection"}) {
    SCOPED_TRACE(frozen);
    for (const TensorSums sums : {TensorSums::Joined, TensorSums::ByValue}) expect_account(frozen, sums);
  }
}

}  // namespace
}  // namespace braid::layout::listing_test
