// The mistakes of families that programs add.
#include "braid/model/family_problems.h"

#include <gtest/gtest.h>

#include "braid/model/block_builder.h"

namespace braid::model::family_problems_test {
namespace {

using Texts = std::vector<std::string>;

BlockGraph embedding(const ModelSpec& spec) { return BlockBuilder(spec, "bt").lookup("wte").build(); }
BlockGraph layer(const ModelSpec& spec) {
  return BlockBuilder(spec, "btc").linear("up", "f").linear("down", "c").join().build();
}
BlockGraph head(const ModelSpec& spec) { return BlockBuilder(spec, "btc").loss("wte").build(); }

Family family_of_blocks(const FamilyBlocks& blocks, int parts = 1) {
  return {.name = "own",
          .traits = {FeedForward::Plain, KeyHeads::OfEachHead, PositionKind::Learned, HeadForm::Fixed, parts},
          .ffn_width = [](const ModelSpec& spec) { return 4 * spec.width; },
          .blocks = blocks};
}

const ModelSpec kSpec{.layers = 1, .heads = 2, .width = 8, .context = 4, .vocab = 8, .dropout = 0.1};

Texts problems(const FamilyBlocks& blocks, int parts = 1) {
  return problems_of_family(kSpec, family_of_blocks(blocks, parts));
}
Texts problems_of_layer(BlockGraph (*of_layer)(const ModelSpec&)) { return problems({embedding, of_layer, head}); }

TEST(FamilyProblems, SoundOnesHaveNone) {
  EXPECT_EQ(problems({embedding, layer, head}), Texts());
  for (const Family& family : families()) {
    EXPECT_EQ(problems_of_family(kSpec, family), Texts()) << family.name;
    EXPECT_EQ(problems_on_tensor_ranks(kSpec, family), Texts()) << family.name;
  }
}

TEST(FamilyProblems, BlocksHaveTheirPlaces) {
  EXPECT_EQ(problems({layer, layer, head}),
            (Texts{"the embedding maps btc to btc, not bt to btc", "the embedding does not begin with a lookup"}));
  EXPECT_EQ(problems({embedding, layer, layer}), Texts{"the head does not end with a loss"});
  const auto no_ops = [](const ModelSpec& spec) { return BlockBuilder(spec, "btc").build(); };
  EXPECT_EQ(problems({embedding, no_ops, no_ops}), (Texts{"the layer has no ops", "the head has no ops"}));
  EXPECT_EQ(
      problems_of_layer([](const ModelSpec& spec) { return BlockBuilder(spec, "btc").linear("up", "f").build(); }),
      Texts{"the layer maps btc to btf, not btc to btc"});
  EXPECT_EQ(
      problems_of_layer([](const ModelSpec& spec) { return BlockBuilder(spec, "btc").lookup("a").join().build(); }),
      Texts{"lookup btc,vc->btc is in the wrong place of the layer"});
  EXPECT_EQ(problems({embedding, layer, head}, 2), Texts{"the layer has 0 cuts, not 1"});
}

TEST(FamilyProblems, TheFamilyStatesWhatItsLayersAre) {
  EXPECT_EQ(problems_of_layer([](const ModelSpec& spec) {
              BlockBuilder block(spec, "btc");
              block.linear("attention.qkv", "[kmd|kd|kd]").apply(OpKind::Rotary).attention();
              block.linear("attention.projection", "c").join();
              return block.linear("mlp.gate_up", "[f|f]").swiglu().linear("mlp.down", "c").join().build();
            }),
            (Texts{"the layer has rotary positions, and the family states learned ones",
                   "the layer has a gate, and the family states a plain feed-forward branch"}));
}

TEST(FamilyProblems, AMaskedFamilyPicksRowsAndSeesAllTokens) {
  const auto both_ways = [](const ModelSpec& spec) {
    BlockBuilder block(spec, "btc");
    block.linear("attention.qkv", "[kmd|kd|kd]").attention(0, Sees::All);
    return block.linear("attention.projection", "c").join().build();
  };
  const auto picking = [](const ModelSpec& spec) { return BlockBuilder(spec, "btc").pick_rows().loss("wte").build(); };
  EXPECT_EQ(problems({embedding, both_ways, picking}),
            (Texts{"the layer's attention sees later tokens, and the family states a causal objective",
                   "the head picks rows, and the family states a causal objective"}));
  Family masked = family_of_blocks({embedding, both_ways, picking});
  masked.traits.objective = Objective::Masked;
  EXPECT_EQ(problems_of_family(kSpec, masked), Texts());
  masked.blocks.head = head;
  EXPECT_EQ(problems_of_family(kSpec, masked),
            Texts{"the head picks no rows, and the family states a masked objective"});
}

TEST(FamilyProblems, LettersHaveExtents) {
  EXPECT_EQ(problems_of_layer([](const ModelSpec& spec) {
              return BlockBuilder(spec, "btc").linear("a", "z").linear("b", "c").build();
            }),
            (Texts{"linear btc,zc->btz has a dim without an extent: btz",
                   "linear btc,zc->btz has a dim without an extent: zc",
                   "linear btz,cz->btc has a dim without an extent: cz"}));
}

TEST(FamilyProblems, OnlyTheTableIsShared) {
  const auto more = [](const ModelSpec& spec) {
    return BlockBuilder(spec, "bt").lookup("wte").linear("a", "c").build();
  };
  const auto same = [](const ModelSpec& spec) {
    return BlockBuilder(spec, "btc").linear("a", "c").loss("wte").build();
  };
  EXPECT_EQ(problems({more, layer, same}), Texts{"a.weight is in the embedding and in the head"});
  const auto table = [](const ModelSpec& spec) {
    return BlockBuilder(spec, "btc").linear("wte", "c").loss("b").build();
  };
  EXPECT_EQ(problems({embedding, layer, table}), Texts{"wte.weight is in the embedding and in the head"});
}

Texts on_ranks(BlockGraph (*of_layer)(const ModelSpec&)) {
  return problems_on_tensor_ranks(kSpec, family_of_blocks({embedding, of_layer, head}));
}

TEST(FamilyProblems, TensorRanksSplitOneDim) {
  EXPECT_EQ(on_ranks(layer), Texts());
  EXPECT_EQ(on_ranks([](const ModelSpec& spec) {
              BlockBuilder block(spec, "btc");
              return block.linear("a", "f").norm(OpKind::LayerNorm, "b").dropout().linear("c", "c").build();
            }),
            (Texts{"layer norm btf,f,f->btf needs f whole", "dropout btf->btf needs f whole"}));
  EXPECT_EQ(on_ranks([](const ModelSpec& spec) { return BlockBuilder(spec, "btf").linear("a", "f").build(); }),
            Texts{"linear btf,ff->btf has a tensor with two split dims"});
  EXPECT_EQ(
      on_ranks([](const ModelSpec& spec) { return BlockBuilder(spec, "btf").opaque(nullptr, "bt(kmd)").build(); }),
      Texts{"opaque btf->bt(kmd) has two split letters"});
  EXPECT_EQ(on_ranks([](const ModelSpec& spec) { return BlockBuilder(spec, "btc").linear("a", "(mkd)").build(); }),
            Texts{"linear btc,(mkd)c->bt(mkd) has a split letter that is not the major one of its dim"});
}

Texts on_split_tokens(BlockGraph (*of_layer)(const ModelSpec&)) {
  return problems_on_split_tokens(kSpec, family_of_blocks({embedding, of_layer, head}));
}

TEST(FamilyProblems, OpaqueOpsMayMixTokens) {
  EXPECT_EQ(on_split_tokens(layer), Texts());
  const auto is_split = [](const ModelSpec& spec) {
    return BlockBuilder(spec, "btc").linear("a", "f").opaque(nullptr, "btf").linear("b", "c").join().build();
  };
  EXPECT_EQ(on_split_tokens(is_split), Texts());
  const auto is_whole = [](const ModelSpec& spec) { return BlockBuilder(spec, "btc").opaque(nullptr, "btc").build(); };
  EXPECT_EQ(on_split_tokens(is_whole), Texts{"opaque btc->btc reads tokens that tensor ranks split"});
  for (const Family& family : families()) EXPECT_EQ(problems_on_split_tokens(kSpec, family), Texts()) << family.name;
}

}  // namespace
}  // namespace braid::model::family_problems_test
