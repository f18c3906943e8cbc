// Blocks of optimizer states in 8 bits on tensor ranks.
#include "braid/layout/state_blocks.h"

#include <gtest/gtest.h>

#include <utility>

namespace braid::layout::state_blocks_test {
namespace {

RunSpec run_on(ModelSpec model, int tensor_ranks) {
  RunSpec run;
  run.model = std::move(model);
  run.mesh.tensor = tensor_ranks;
  run.optimizer.state_dtype = StateType::Int8;
  return run;
}

// Heads of 64 features, or of 128. A vocabulary is padded, and its bias in BERT ends within a block.
TEST(StateBlocks, OfLargeModelsAreWholeOnTensorRanks) {
  const ModelSpec gpt2{.layers = 2, .heads = 12, .width = 768, .context = 64, .vocab = 50257};
  for (const int ranks : {1, 2, 3, 4, 6, 12}) EXPECT_EQ(state_block_problems(run_on(gpt2, ranks)).size(), 0u) << ranks;
  ModelSpec bert = gpt2;
  bert.family = ModelFamily::Bert;
  bert.vocab = 30522;
  for (const int ranks : {1, 2, 4}) EXPECT_EQ(state_block_problems(run_on(bert, ranks)).size(), 0u) << ranks;
  const ModelSpec llama{.family = ModelFamily::Llama,
                        .layers = 2,
                        .heads = 32,
                        .kv_heads = 8,
                        .width = 4096,
                        .ffn = 14336,
                        .context = 64,
                        .vocab = 128256};
  for (const int ranks : {1, 2, 4, 8, 16}) EXPECT_EQ(state_block_problems(run_on(llama, ranks)).size(), 0u) << ranks;
}

TEST(StateBlocks, AreCutInSmallModels) {
  const ModelSpec small{.layers = 2, .heads = 2, .width = 64, .context = 64, .vocab = 257};
  EXPECT_TRUE(state_block_problems(run_on(small, 1)).empty());
  const auto problems = state_block_problems(run_on(small, 2));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(
      text(problems[0]),
      "optimizer.state_dtype = \"int8\": must be \"float32\" or \"bfloat16\" with mesh.tensor = 2: a tensor rank's "
      "part of blocks.0.attention.qkv.bias is not whole blocks of 64 elements, which share a scale; nearest valid "
      "is \"bfloat16\"");
  RunSpec frozen = run_on(small, 2);
  frozen.optimizer.groups = {{.match = "blocks.*", .frozen = true}};
  EXPECT_TRUE(state_block_problems(frozen).empty()) << "frozen parameters have no states";
}

}  // namespace
}  // namespace braid::layout::state_blocks_test
