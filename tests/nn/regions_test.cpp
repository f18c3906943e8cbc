// The conjugate regions against their definition, and the in-place hazards around them.
#include "braid/nn/regions.h"

#include <gtest/gtest.h>

#include "braid/comm/local/run_ranks.h"
#include "tests/nn/formula_values.h"

namespace braid::nn::regions_test {
namespace {

at::Tensor leaf(const std::string& name, int rank, at::IntArrayRef shape) {
  return formula_tensor(name + std::to_string(rank), shape).requires_grad_();
}

at::Tensor sum_over_ranks(const std::string& name, int n, at::IntArrayRef shape) {
  at::Tensor sum = formula_tensor(name + "0", shape);
  for (int r = 1; r < n; ++r) sum.add_(formula_tensor(name + std::to_string(r), shape));
  return sum;
}

void expect_close(const at::Tensor& a, const at::Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_TRUE(a.allclose(b, 1e-13, 1e-14));
}

class Regions : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Regions, testing::Values(1, 2, 3, 4));

TEST_P(Regions, CopyToSumsGradients) {
  run_ranks(GetParam(), [](Communicator& group) {
    const at::Tensor x = leaf("x", group.rank(), {2, 3});
    const at::Tensor y = copy_to(x, group, at::kDouble);
    EXPECT_TRUE(y.equal(x));
    EXPECT_EQ(y.data_ptr(), x.data_ptr());
    y.mul(formula_tensor("w" + std::to_string(group.rank()), {2, 3})).sum().backward();
    expect_close(x.grad(), sum_over_ranks("w", group.size(), {2, 3}));
  });
}

TEST_P(Regions, ReduceFromSumsInPlace) {
  run_ranks(GetParam(), [](Communicator& group) {
    const at::Tensor leaf_x = leaf("x", group.rank(), {2, 3}), x = leaf_x.mul(1);
    const at::Tensor y = reduce_from_(x, group);
    EXPECT_EQ(y.data_ptr(), x.data_ptr());
    expect_close(y, sum_over_ranks("x", group.size(), {2, 3}));
    const at::Tensor w = formula_tensor("w", {2, 3});
    y.mul(w).sum().backward();
    EXPECT_TRUE(leaf_x.grad().equal(w));
  });
}

TEST(RegionsAlone, AreTheIdentityWithoutANode) {
  run_ranks(1, [](Communicator& group) {
    const at::Tensor x = leaf("x", 0, {2, 3});
    EXPECT_TRUE(copy_to(x, group, at::kDouble).is_same(x));
    EXPECT_TRUE(reduce_from_(x, group).is_same(x));
  });
}

// add() passes one tensor to both of its inputs as their gradient; the input that was recorded first reads it last.
TEST(RegionsHazards, CopyToDoesNotReduceAGradientThatOthersRead) {
  run_ranks(2, [](Communicator& group) {
    const at::Tensor a = leaf("a", 0, {4}), b = leaf("b", 0, {4}), w = formula_tensor("w", {4});
    const at::Tensor reads_last = b.mul(1);
    copy_to(a, group, at::kDouble).add(reads_last).mul(w).sum().backward();
    EXPECT_TRUE(a.grad().equal(w.mul(2)));
    EXPECT_TRUE(b.grad().equal(w));
  });
}

TEST(RegionsHazards, CopyToTakesExpandedAndStridedGradients) {
  run_ranks(2, [](Communicator& group) {
    const at::Tensor a = leaf("a", 0, {2, 3}), b = leaf("b", 0, {2, 3});
    copy_to(a, group, at::kDouble).sum().backward();
    EXPECT_TRUE(a.grad().eq(2).all().item<bool>());
    const at::Tensor w = formula_tensor("w", {3, 2});
    copy_to(b, group, at::kDouble).t().mul(w).sum().backward();
    EXPECT_TRUE(b.grad().equal(w.t().mul(2)));
  });
}

TEST(RegionsHazards, AutogradComplainsWhenAReducedTensorWasSaved) {
  run_ranks(2, [](Communicator& group) {
    const at::Tensor x = leaf("x", 0, {4}), y = x.mul(2);
    const at::Tensor square = y.mul(y);
    reduce_from_(y, group);
    EXPECT_THROW(square.sum().backward(), std::exception);
  });
}

}  // namespace
}  // namespace braid::nn::regions_test
