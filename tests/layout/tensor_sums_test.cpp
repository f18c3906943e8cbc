// The values that tensor ranks sum.
#include "braid/layout/tensor_sums.h"

#include <gtest/gtest.h>

#include "braid/model/block_builder.h"

namespace braid::layout::tensor_sums_test {
namespace {

using model::BlockBuilder;
using model::OpKind;

const ModelSpec& spec() {
  static const ModelSpec kSpec{.layers = 1, .heads = 2, .width = 8, .context = 4, .vocab = 8};
  return kSpec;
}

// Returns the numbers of the ops with these outputs.
std::vector<int> ops_of(const model::BlockGraph& block, const std::vector<bool>& values) {
  std::vector<int> ops;
  for (int op = 0; op < static_cast<int>(block.ops.size()); ++op) {
    if (values[block.ops[op].out]) ops.push_back(op);
  }
  return ops;
}
std::vector<int> summed_ops(const model::BlockGraph& block) { return ops_of(block, summed_values(block)); }
std::vector<int> partial_ops(const model::BlockGraph& block) { return ops_of(block, partial_values(block)); }

using Ops = std::vector<int>;

TEST(TensorSums, FollowAProductOverASplitLetter) {
  EXPECT_EQ(summed_ops(BlockBuilder(spec(), "btc").linear("up", "f").linear("down", "c").join().build()), Ops{1});
  EXPECT_EQ(summed_ops(BlockBuilder(spec(), "btc").linear("same", "c").join().build()), Ops{});
  EXPECT_EQ(summed_ops(BlockBuilder(spec(), "bt").lookup("wte").positions("wpe").build()), Ops{0});
}

TEST(TensorSums, ComeBeforeABias) {
  EXPECT_EQ(summed_ops(BlockBuilder(spec(), "btf").linear("down", "c").bias().build()), Ops{0});
}

TEST(TensorSums, OfTwoBranchesAreOne) {
  BlockBuilder block(spec(), "btc");
  const int first = block.linear("a", "f").linear("b", "c").value();
  block.from(0).linear("c", "f").linear("d", "c").plus(first);
  EXPECT_EQ(summed_ops(block.build()), Ops{4}) << "the residual's output";
  EXPECT_EQ(summed_ops(block.join().build()), Ops{4});
  EXPECT_EQ(partial_ops(block.build()), (Ops{1, 3})) << "the branches stay parts of the sum";
}

TEST(TensorSums, AreOfEachBranchIfAnotherOpReadsOne) {
  BlockBuilder block(spec(), "btc");
  const int first = block.linear("a", "f").linear("b", "c").value();
  const int second = block.from(0).linear("c", "f").linear("d", "c").value();
  block.from(second).plus(first).from(first).norm(OpKind::RmsNorm, "norm").join();
  EXPECT_EQ(summed_ops(block.build()), (Ops{1, 3}));
  EXPECT_EQ(partial_ops(block.build()), Ops{});
}

TEST(TensorSums, DoNotWaitForTheOtherSideOfACut) {
  BlockBuilder block(spec(), "btc");
  block.linear("a", "f").linear("b", "c").cut();
  const int first = block.value();
  block.linear("c", "f").linear("d", "c").plus(first);
  EXPECT_EQ(summed_ops(block.build()), (Ops{1, 3}));
}

TEST(TensorSums, OfGradientsAreThoseOfReadersOfAWholeTensor) {
  const model::BlockGraph block = BlockBuilder(spec(), "btc")
                                      .norm(OpKind::RmsNorm, "norm")
                                      .linear("qkv", "[kmd|kd|kd]")
                                      .head_norms("heads")
                                      .attention()
                                      .linear("projection", "c")
                                      .build();
  const auto sums_input = [&](int op) { return sums_input_gradient(block, block.ops[op]); };
  EXPECT_FALSE(sums_input(0));
  EXPECT_TRUE(sums_input(1));
  EXPECT_FALSE(sums_input(2));
  EXPECT_FALSE(sums_input(4));
  EXPECT_TRUE(sums_gradient_of(block, block.ops[2], block.ops[2].params[0])) << "all heads share a norm";
  EXPECT_FALSE(sums_gradient_of(block, block.ops[0], block.ops[0].params[0]));
}

}  // namespace
}  // namespace braid::layout::tensor_sums_test
