// Frozen parameters in a model's graph: kinds of blocks, the values that need gradients, operations.
#include "braid/model/trained.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include "braid/model/families.h"
#include "braid/model/model_flops.h"
#include "braid/model/op_table.h"

namespace braid::model::trained_test {
namespace {

const ModelSpec kSpec{
    .layers = 4, .heads = 2, .width = 8, .context = 4, .vocab = 16, .output_weights = OutputWeights::Untied};

ModelGraph without(const std::vector<std::string>& patterns) {
  return with_frozen(graph_of(kSpec), [&](const std::string& name) {
    return std::ranges::any_of(
        patterns, [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
  });
}

TEST(Trained, LayersThatDifferAreOfSeveralKinds) {
  EXPECT_EQ(without({}).kinds.size(), graph_of(kSpec).kinds.size());
  const ModelGraph graph = without({"w?e.weight", "blocks.[01].*"});
  // The first trained layer is of a kind of its own: nothing is trained before it.
  EXPECT_EQ(graph.blocks, (std::vector<int>{0, 1, 1, 2, 3, 4}));
  EXPECT_EQ(graph.block(3).of_input, Gradient::Unneeded);
  EXPECT_EQ(graph.block(4).of_input, Gradient::Needed);
}

TEST(Trained, GradientsBeginAtTheFirstTrainedParameter) {
  const ModelGraph graph = without({"w?e.weight", "blocks.0.ln_1.*", "blocks.0.attention.qkv.weight"});
  const BlockGraph& block = graph.block(1);
  const std::vector<bool> has = values_with_gradient(block);
  for (const Op& op : block.ops) {
    const bool before = op.kind == OpKind::LayerNorm && op.in[0] == 0;
    const bool qkv = op.kind == OpKind::Linear && op.params[0].name == "attention.qkv.weight";
    EXPECT_EQ(has[op.out], !before && !qkv) << op.out;
  }
}

double flops_without(const std::vector<std::string>& patterns) {
  return model_flops_per_token(without(patterns), extents_of(kSpec, 1, 1));
}

TEST(Trained, OperationsAreThoseThatAreNeeded) {
  const double layer = 2 * 12 * 8 * 8, attention = 4 * 2 * 8, head = 2 * 16 * 8;  // of a token's forward
  EXPECT_EQ(flops_without({}), 3 * (4 * (layer + attention) + head));
  EXPECT_EQ(flops_without({"*.bias", "*ln_*"}), flops_without({}));
  EXPECT_EQ(flops_without({"blocks.*.weight"}), 3 * (4 * attention + head) + 2 * 4 * layer);
  EXPECT_EQ(flops_without({"w*", "blocks.*", "ln_f.*"}), 4 * (layer + attention) + 2 * head);
  // Nothing is trained before the queries' weight, so the first layer's input has no gradient.
  EXPECT_EQ(flops_without({"w*", "blocks.0.ln_1.*"}), flops_without({}) - 2 * 3 * 8 * 8);
}

}  // namespace
}  // namespace braid::model::trained_test
