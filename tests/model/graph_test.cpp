// Graphs of the families: their text, and the mistakes that checks find.
#include "braid/model/graph.h"

#include <gtest/gtest.h>

#include <functional>

#include "braid/base/errors.h"
#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "tests/support/drawn_models.h"

namespace braid::model::graph_test {
namespace {

ModelSpec qwen() {
  return {.family = ModelFamily::Llama,
          .heads = 4,
          .kv_heads = 2,
          .width = 32,
          .qk_norm = true,
          .vocab = 19,
          .dropout = 0.1};
}

TEST(Dims, TextComesBack) {
  for (const char* text : {"btc", "bt(kmd)", "[kmd|kd|kd]c", "e[f|f]c", ""}) EXPECT_EQ(text_of(dims_of(text)), text);
  Extents extents;
  extents['k'] = 2, extents['m'] = 3, extents['d'] = 5, extents['c'] = 7;
  EXPECT_EQ(extents.shape(dims_of("[kmd|kd|kd]c")), (std::vector<int64_t>{50, 7}));
  EXPECT_EQ(extents.segments(dims_of("[kmd|kd|kd]c")[0]), (std::vector<int64_t>{30, 10, 10}));
}

TEST(Graph, TextListsTheOpsOfALayer) {
  EXPECT_EQ(text_of(graph_of(qwen()).block(1)),
            "rms norm btc,c->btc norm_1.weight\n"
            "linear btc,[kmd|kd|kd]c->bt[kmd|kd|kd] attention.qkv.weight\n"
            "head norm bt[kmd|kd|kd],d,d->bt[kmd|kd|kd] attention.norm_q.weight attention.norm_k.weight\n"
            "rotary bt[kmd|kd|kd]->bt[kmd|kd|kd]\n"
            "attention bt[kmd|kd|kd]->bt(kmd)\n"
            "linear bt(kmd),c(kmd)->btc attention.projection.weight\n"
            "dropout btc->btc\n"
            "residual btc,btc->btc\n"
            "cut\n"
            "rms norm btc,c->btc norm_2.weight\n"
            "linear btc,[f|f]c->bt[f|f] mlp.gate_up.weight\n"
            "swiglu bt[f|f]->btf\n"
            "linear btf,cf->btc mlp.down.weight\n"
            "dropout btc->btc\n"
            "residual btc,btc->btc\n");
}

TEST(Graph, ThoseOfDrawnModelsAreSound) {
  DrawnModels models;
  for (int i = 0; i < 100; ++i) {
    ModelSpec spec = models.draw(1);
    spec.experts = models.one_of({0, 8});
    for (const BlockGraph& block : graph_of(spec).kinds) EXPECT_EQ(problems_of(block), std::vector<std::string>());
  }
}

TEST(Graph, ChecksFindEachMistake) {
  const BlockGraph sound = graph_of(qwen()).block(1);
  const auto problem = [&](auto change) {
    BlockGraph block = sound;
    change(block);
    const auto problems = problems_of(block);
    return problems.empty() ? "" : problems[0];
  };
  EXPECT_EQ(problem([](BlockGraph& block) { block.ops[0].in[0] = 5; }),
            "rms norm bt(kmd),c->btc reads a value that is not made yet");
  EXPECT_EQ(problem([](BlockGraph& block) { block.ops[5].params[0].dims = dims_of("cf"); }),
            "linear bt(kmd),cf->btc has operands that do not fit");
  EXPECT_EQ(problem([](BlockGraph& block) { block.cuts[0] = 7; }), "the cut before op 7 has 2 values across it");
  EXPECT_EQ(problem([](BlockGraph& block) { block.ops[8].params = block.ops[0].params; }),
            "norm_1.weight is there twice");
  EXPECT_EQ(problem([](BlockGraph& block) {
              Op second = block.ops[5];
              second.in[0] = block.ops[3].in[0], second.params[0].name = "second";
              block.ops.push_back(second);
            }),
            "rotary bt[kmd|kd|kd]->bt[kmd|kd|kd] overwrites a value that another op reads");
}

TEST(Graph, ChecksFindMistakesOfABuilder) {
  ModelSpec spec = qwen();
  const auto problem = [&](const std::function<void(BlockBuilder&)>& build) {
    BlockBuilder block(spec, "btc");
    build(block);
    const auto problems = problems_of(block.build());
    return problems.empty() ? "" : problems[0];
  };
  EXPECT_EQ(problem([](BlockBuilder& b) { b.linear("a", "c").from(0).linear("b", "c").join(); }),
            "linear btc,cc->btc makes a value that no op reads");
  EXPECT_EQ(problem([](BlockBuilder& b) { b.linear("a", "f").apply(OpKind::Gelu).linear("b", "c").join(); }),
            "gelu btf->btf does not follow a bias");
  EXPECT_EQ(problem([](BlockBuilder& b) { b.linear("a", "[kmd|kd|kd]").attention().bias(); }),
            "bias bt(kmd),(kmd)->bt(kmd) overwrites a value that attention keeps");
  EXPECT_EQ(problem([](BlockBuilder& b) { b.linear("a", "c").bias().cut().linear("b", "c"); }), "");
  EXPECT_EQ(problem([](BlockBuilder& b) { b.linear("a", "c").cut().bias().linear("b", "c"); }),
            "the cut before op 1 is at a value that an op overwrites");
  EXPECT_EQ(problem([](BlockBuilder& b) { b.linear("a", "f").cut().linear("b", "c"); }),
            "the cut before op 1 is at btf, not btc");
  EXPECT_EQ(problem([](BlockBuilder& b) { b.cut().linear("a", "c"); }),
            "the cut before op 0 has no parameters on one side");
  EXPECT_EQ(problem([](BlockBuilder& b) { b.linear("a", "f").apply(OpKind::Rotary).linear("b", "c"); }),
            "rotary btf->btf has operands that do not fit");
  EXPECT_EQ(problem([](BlockBuilder& b) { b.linear("a", "f").head_norms("b").linear("c", "c"); }),
            "head norm btf,d,d->btf has operands that do not fit");
  EXPECT_EQ(problem([](BlockBuilder& b) { b.apply(OpKind::Rotary); }),
            "rotary btc->btc overwrites the input of the block");
  EXPECT_EQ(problem([](BlockBuilder& b) {
              const int up = b.linear("a", "f").value();
              b.dropout().bias().linear("b", "c");
              const int first = b.value();
              b.from(up).linear("c", "c").plus(first);
            }),
            "dropout btf->btf passes a value that another op reads to one that overwrites it");
  EXPECT_EQ(problem([](BlockBuilder& b) { b.opaque(nullptr, "btc"); }), "opaque btc->btc has no function");
}

TEST(Graph, OpaqueParametersStartAsTheyAreToldTo) {
  const ModelSpec spec = qwen();
  BlockBuilder block(spec, "btc");
  const std::vector<Param> params =
      block.opaque(nullptr, "btc", {{"a", "c"}, {"b", "c", Init::Kind::Ones}}).build().ops[0].params;
  EXPECT_EQ(params[0].init, (Init{Init::Kind::Normal, spec.init_std}));
  EXPECT_EQ(params[0].decay, WeightDecay::Yes);
  EXPECT_EQ(params[1].init, Init{Init::Kind::Ones});
  EXPECT_EQ(params[1].decay, WeightDecay::No);
}

TEST(Graph, ABuilderRefusesMistakenCalls) {
  const auto mistake = [](const std::function<void(BlockBuilder&)>& build) {
    const ModelSpec spec = qwen();
    BlockBuilder block(spec, "btc");
    try {
      build(block);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string rule = "model.family: must have sound blocks: ";
  EXPECT_EQ(mistake([](BlockBuilder& b) { b.plus(3); }), rule + "plus(3) adds no value of the block");
  EXPECT_EQ(mistake([](BlockBuilder& b) { b.from(3); }), rule + "from(3) names no value of the block");
  EXPECT_EQ(mistake([](BlockBuilder& b) { b.linear("a", "fc"); }),
            rule + "a linear map has one dim of output, not \"fc\"");
  EXPECT_EQ(mistake([](BlockBuilder& b) { b.linear("a", "[f|f"); }), rule + "a bracket of \"[f|f\" is not closed");
  EXPECT_EQ(mistake([](BlockBuilder& b) { b.linear("a", "F"); }), rule + "\"F\" has more than letters in lower case");
  EXPECT_EQ(mistake([](BlockBuilder& b) { b.loss("a").linear("b", "c"); }), rule + "an op reads a loss");
}

TEST(Families, OneThatIsAddedHasItsWord) {
  const Family own{"own", {.parts = 1}, nullptr, {}};
  EXPECT_FALSE(value_of<ModelFamily>("own"));
  const ModelFamily added = add_family(own);
  EXPECT_EQ(value_of<ModelFamily>("own"), added);
  EXPECT_EQ(word(added), "own");
  EXPECT_TRUE(is_added(added));
  EXPECT_FALSE(is_added(ModelFamily::Llama));
  EXPECT_EQ(family_names().back(), "own");
  EXPECT_THROW(add_family(own), InternalError);
  EXPECT_THROW(add_family({"gpt2", {.parts = 1}, nullptr, {}}), InternalError);
  EXPECT_THROW(add_family({"other", {.parts = 3}, nullptr, {}}), InternalError);
}

}  // namespace
}  // namespace braid::model::graph_test
