// Predictions of models whose ops are in other blocks and parts than those of GPT-2 and Llama.
#include <gtest/gtest.h>

#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"
#include "braid/plan/block_work.h"
#include "braid/plan/braid_memory.h"
#include "tests/plan/a100_runs.h"

namespace braid::plan::op_places_test {
namespace {

using model::BlockBuilder;
using model::OpKind;

model::BlockGraph feed_forward_first(const ModelSpec& spec) {
  BlockBuilder block(spec, "btc");
  block.norm(OpKind::RmsNorm, "norm_2").linear("mlp.gate_up", "[f|f]").swiglu().linear("mlp.down", "c").join().cut();
  block.norm(OpKind::RmsNorm, "norm_1").linear("attention.qkv", "[kmd|kd|kd]").apply(OpKind::Rotary).attention();
  return block.linear("attention.projection", "c").join().build();
}

TEST(OpPlaces, AttentionCountsInThePartWhereItIs) {
  RunSpec run;
  run.model = {.family = ModelFamily::Llama, .layers = 2, .heads = 4, .width = 64, .context = 32, .vocab = 64};
  model::FamilyBlocks blocks = model::family_of(run.model).blocks;
  const RunLayout usual = layout_of(run, a100_nodes(1), FormulaSet::Braid);
  blocks.layer = feed_forward_first;
  const auto account =
      std::make_shared<const layout::ModelAccount>(layout::account_of(run.model, model::graph_of(run.model, blocks)));
  const RunLayout swapped = layout_of(run, a100_nodes(1), FormulaSet::Braid, account);
  const PartWork expected = part_work(run, usual, 0, FormulaSet::Braid);
  const PartWork first = part_work(run, swapped, 0, FormulaSet::Braid);
  const PartWork second = part_work(run, swapped, 1, FormulaSet::Braid);
  EXPECT_EQ(first.forward.attention.flops, 0);
  EXPECT_GT(expected.forward.attention.flops, 0);
  EXPECT_EQ(second.forward.attention.flops, expected.forward.attention.flops);
  EXPECT_EQ(second.input_grad.attention.flops, expected.input_grad.attention.flops);
  EXPECT_EQ(second.selected.attention.flops, expected.selected.attention.flops);
  EXPECT_EQ(constant_bytes(run, swapped, swapped.stages[0]), constant_bytes(run, usual, usual.stages[0]));
}

model::BlockGraph embedding(const ModelSpec& spec) {
  return BlockBuilder(spec, "bt").lookup("wte").linear("up", "f").linear("down", "c").build();
}

model::BlockGraph head(const ModelSpec& spec) {
  BlockBuilder block(spec, "btc");
  return block.linear("qkv", "[kmd|kd|kd]").attention().linear("projection", "c").loss("wte").build();
}

TEST(OpPlaces, EmbeddingAndHeadCountBesideTheirTables) {
  RunSpec run;
  run.model = {.family = ModelFamily::Llama, .layers = 2, .heads = 4, .width = 64, .context = 32, .vocab = 64};
  run.mesh.tensor = 2;
  model::FamilyBlocks blocks = model::family_of(run.model).blocks;
  const RunLayout usual = layout_of(run, a100_nodes(1), FormulaSet::Braid);
  blocks.embedding = embedding, blocks.head = head;
  const auto account =
      std::make_shared<const layout::ModelAccount>(layout::account_of(run.model, model::graph_of(run.model, blocks)));
  const RunLayout more = layout_of(run, a100_nodes(1), FormulaSet::Braid, account);
  EXPECT_EQ(embedding_work(run, usual).forward.products.size(), 0u);
  const PartWork begin = embedding_work(run, more), end = head_work(run, more, FormulaSet::Braid);
  ASSERT_EQ(begin.forward.products.size(), 2u);
  EXPECT_EQ(begin.weight_grad.products[0].flops, 2.0 * more.tokens * 64 * model::ffn_width(run.model) / 2);
  EXPECT_EQ(begin.forward.num_reductions, 2) << "of the lookup and of the branch";
  EXPECT_EQ(begin.input_grad.num_reductions, 1);
  EXPECT_EQ(end.forward.products.size(), 3u);
  EXPECT_EQ(end.forward.attention.flops, part_work(run, usual, 0, FormulaSet::Braid).forward.attention.flops);
  EXPECT_EQ(end.forward.num_reductions, 1);
  EXPECT_EQ(end.input_grad.num_reductions, 2);
}

model::BlockGraph branches_in_parallel(const ModelSpec& spec) {
  BlockBuilder block(spec, "btc");
  const int normed = block.norm(OpKind::RmsNorm, "norm").value();
  const int attended =
      block.linear("attention.qkv", "[kmd|kd|kd]").attention().linear("attention.projection", "c").value();
  block.from(normed).linear("mlp.gate_up", "[f|f]").swiglu().linear("mlp.down", "c");
  return block.plus(attended).join().build();
}

// In reproducible mode each branch has sums of its own, in float32. Under sequence parallelism a reduce-scatter of
// float32 belongs to an all-gather of bfloat16 in forward, and to one of float32 in backward; an input that is gathered
// again is bfloat16.
TEST(OpPlaces, SumsOfReproducibleRunsAreSeparateAndInFloat) {
  RunSpec run;
  run.model = {.family = ModelFamily::Llama, .layers = 2, .heads = 4, .width = 64, .context = 32, .vocab = 64};
  run.mesh.tensor = 2;
  run.train.dtype = DType::BFloat16;
  model::FamilyBlocks blocks = model::family_of(run.model).blocks;
  blocks.layer = branches_in_parallel;
  const auto work_of = [&](Reduction reduction) {
    run.train.reduction = reduction;
    const auto account = std::make_shared<const layout::ModelAccount>(
        layout::account_of(run.model, model::graph_of(run.model, blocks), 1, layout::sums_of(run.train)));
    return part_work(run, layout_of(run, a100_nodes(1), FormulaSet::Braid, account), 0, FormulaSet::Braid);
  };
  const PartWork fast = work_of(Reduction::Fast), reproducible = work_of(Reduction::Reproducible);
  const double elements = fast.forward.reduced_bytes / 2;
  EXPECT_EQ(fast.forward.num_reductions, 1);
  EXPECT_EQ(fast.input_grad.num_reductions, 1);
  EXPECT_EQ(fast.input_grad.reduced_bytes, 2 * elements);
  EXPECT_EQ(reproducible.forward.num_reductions, 2);
  EXPECT_EQ(reproducible.input_grad.num_reductions, 2);
  EXPECT_EQ(reproducible.forward.reduced_bytes, 4 * elements);
  EXPECT_EQ(reproducible.input_grad.reduced_bytes, 4 * elements);
  run.mesh.sequence_parallel = true;
  const PartWork split = work_of(Reduction::Reproducible);
  EXPECT_EQ(split.forward.reduced_bytes, (4 + 2) / 2 * elements);
  EXPECT_EQ(split.input_grad.reduced_bytes, (4 + 2) / 2 * elements);
  EXPECT_EQ(split.input_grad.gathered_bytes, 2 * elements);
}

}  // namespace
}  // namespace braid::plan::op_places_test
