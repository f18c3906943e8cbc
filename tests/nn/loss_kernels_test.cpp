// Kernels of the loss and of weight gradients against float64; the same bits on every processor and number of threads.
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "braid/base/errors.h"
#include "braid/nn/kernels/cross_entropy.h"
#include "braid/nn/kernels/cross_entropy_rows.h"
#include "braid/nn/kernels/processor.h"
#include "braid/nn/kernels/row_sum.h"
#include "braid/nn/kernels/scatter.h"
#include "tests/nn/formula_values.h"

namespace braid::kernels::loss_kernels_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class LossKernels : public testing::TestWithParam<at::ScalarType> {
 protected:
  at::Tensor values(const char* name, at::IntArrayRef shape) const {
    return formula_tensor(name, shape).to(GetParam());
  }
  at::ScalarType sums() const { return GetParam() == at::kDouble ? at::kDouble : at::kFloat; }
  double epsilon() const { return sums() == at::kDouble ? 1e-15 : 2e-7; }
};
INSTANTIATE_TEST_SUITE_P(Types, LossKernels, testing::Values(at::kDouble, at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

double worst(const at::Tensor& a, const at::Tensor& b) {
  return a.to(at::kDouble).sub(b.to(at::kDouble)).abs().max().item<double>();
}

// Widths around one, several and no register; the padding is garbage.
TEST_P(LossKernels, SoftmaxSumsAndGradientAgreeWithFloat64) {
  for (const auto& [width, real] : {std::pair<int64_t, int64_t>{1, 1}, {7, 5}, {16, 16}, {65, 64}, {259, 250}}) {
    const int64_t n = 5;
    const at::Tensor logits = values("logits", {n, width}).mul_(12);
    logits.narrow(1, real, width - real).fill_(kNan);
    const at::Tensor column = formula_integers("targets", {n}, real);
    column[2].fill_(-1);
    const at::Tensor x = logits.narrow(1, 0, real).to(at::kDouble).clone();
    const SoftmaxSums got = softmax_sums(logits, real, column);
    const at::Tensor max = std::get<0>(x.max(1)), sum = x.sub(max.unsqueeze(1)).exp().sum(1);
    EXPECT_EQ(worst(got.max_n, max), 0);
    EXPECT_LT(worst(got.sum_n.div(sum), at::full({n}, 1, at::kDouble)), 4 * epsilon());
    const at::Tensor ours = column.ge(0).to(at::kDouble), at = column.clamp_min(0).unsqueeze(1);
    EXPECT_EQ(worst(got.target_n, x.gather(1, at).squeeze(1).mul(ours)), 0);

    const double step = 0.125;
    softmax_gradient_(logits, {real, column, got.max_n, got.sum_n, at::full({}, step, sums())});
    const at::Tensor exact = x.softmax(1).scatter_add(1, at, ours.neg().unsqueeze(1)).mul(step);
    const double rounding = GetParam() == at::kBFloat16 ? 4e-3 : GetParam() == at::kHalf ? 5e-4 : 0;
    EXPECT_LT(worst(logits.narrow(1, 0, real), exact), step * (rounding + 4 * epsilon())) << width;
    EXPECT_TRUE(logits.narrow(1, real, width - real).eq(0).all().item<bool>());
  }
}

// Gradients of logits far beyond the cap, where 1 - tanh(x)^2 would cancel, are as accurate as others.
TEST(CappedLogits, GradientsAreAccurateNearTheCap) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor logits = at::linspace(-20, 20, 101, type).unsqueeze(0), x = logits.to(at::kDouble).div(2);
    const at::Tensor column = at::full({1}, -1, at::kLong), one = at::full({}, 1, type);
    const SoftmaxSums of = softmax_sums({logits, 2}, 101, column);
    softmax_gradient_(logits, {101, column, of.max_n, of.sum_n, one, 2});
    const at::Tensor exact = x.tanh().mul(2).softmax(1).div(x.cosh().square());
    const double most = 20 * (type == at::kFloat ? 1.2e-7 : 2.2e-16);  // units in the last place
    EXPECT_LT(worst(logits.to(at::kDouble).div(exact), one), most) << type;
  }
}

TEST_P(LossKernels, ARankWithoutRealColumnsAddsNothing) {
  const at::Tensor logits = values("logits", {2, 3}), column = at::full({2}, -1, at::kLong);
  const SoftmaxSums got = softmax_sums(logits, 0, column);
  EXPECT_TRUE(got.max_n.isneginf().all().item<bool>());
  EXPECT_EQ(got.sum_n.abs().max().item<double>(), 0);
  const at::Tensor one = at::full({2}, 1, sums());
  softmax_gradient_(logits, {0, column, one, one, at::full({}, 1, sums())});
  EXPECT_TRUE(logits.eq(0).all().item<bool>());
}

TEST_P(LossKernels, NanAndInfinityAreNotHidden) {
  for (const double bad : {kNan, std::numeric_limits<double>::infinity()}) {
    const at::Tensor logits = values("logits", {1, 40});
    logits[0][33].fill_(bad);
    EXPECT_FALSE(softmax_sums(logits, 40, at::full({1}, 0, at::kLong)).sum_n.isfinite().item<bool>());
  }
}

template <class T>
void expect_same_bits_on_all_processors(const at::Tensor& logits) {
  using M = MathOf<T>;
  const int64_t n = logits.size(0), width = logits.size(1), real = width - 3;
  const at::Tensor column = formula_integers("targets", {n}, real);
  at::Tensor first;
  for (const Processor processor : {Processor::Baseline, Processor::Avx512}) {
    if (!can_run(processor)) continue;
    const auto& kernels = kernels_for<CrossEntropyKernels<T>>(processor);
    const at::Tensor x = logits.clone(), sums = at::full({3, n}, kNan, at::kFloat);
    M* const max = sums.mutable_data_ptr<M>();
    const int64_t* columns = column.const_data_ptr<int64_t>();
    kernels.sums({{x.const_data_ptr<T>(), width, real, columns}, max, max + n, max + 2 * n}, {0, n});
    kernels.gradient({{x.mutable_data_ptr<T>(), width, real, columns}, max, max + n, M(0.5)}, {0, n});
    const at::Tensor all = at::full({n * (width + 3)}, 0, at::kFloat);
    all.narrow(0, 0, 3 * n).copy_(sums.flatten());
    all.narrow(0, 3 * n, n * width).copy_(x.flatten());
    if (!first.defined()) first = all;
    EXPECT_TRUE(all.equal(first));
  }
}

TEST(LossKernelsOnProcessors, GiveTheSameBits) {
  const at::Tensor logits = formula_tensor("logits", {4, 213}).mul_(20);
  expect_same_bits_on_all_processors<float>(logits.to(at::kFloat));
  expect_same_bits_on_all_processors<c10::BFloat16>(logits.to(at::kBFloat16));
  expect_same_bits_on_all_processors<c10::Half>(logits.to(at::kHalf));
}

TEST_P(LossKernels, RowSumsOverwriteGarbageOrAdd) {
  for (const auto& [n, c] : {std::pair<int64_t, int64_t>{1, 1}, {63, 5}, {64, 128}, {65, 129}, {300, 300}}) {
    const at::Tensor x = values("x", {n, c}), slot = at::full({c}, kNan, sums());
    const at::Tensor exact = x.to(at::kDouble).sum(0);
    accumulate_row_sum(slot, x, 0);
    EXPECT_LT(worst(slot, exact), epsilon() * static_cast<double>(n));
    accumulate_row_sum(slot, x, 1);
    EXPECT_LT(worst(slot, exact.mul(2)), 2 * epsilon() * static_cast<double>(n));
  }
  const at::Tensor slot = at::full({7}, kNan, sums()), one = values("one", {1});
  accumulate_row_sum(slot, one.expand({4, 7}), 0);
  EXPECT_TRUE(slot.eq(one.to(sums()).mul(4)).all().item<bool>()) << "an expanded gradient";
  accumulate_row_sum(slot, values("none", {0, 7}), 0);
  EXPECT_TRUE(slot.eq(0).all().item<bool>()) << "no rows";
}

TEST_P(LossKernels, AddedRowsAgreeWithFloat64) {
  for (const int64_t c : {1, 63, 64, 200}) {
    const at::Tensor rows = formula_integers("rows", {50}, 7), x = values("x", {50, c});
    const at::Tensor table = formula_tensor("table", {9, c}).to(sums());
    const at::Tensor exact = table.to(at::kDouble).index_add(0, rows, x.to(at::kDouble));
    add_rows_(table, x, rows);
    EXPECT_LT(worst(table, exact), 20 * epsilon());
  }
}

TEST_P(LossKernels, GiveTheSameBitsOnAnyNumberOfThreads) {
  const at::Tensor x = values("x", {700, 301}), rows = formula_integers("rows", {700}, 5);
  const int before = at::get_num_threads();
  at::Tensor first_sums, first_table;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const at::Tensor slot = at::full({301}, 0, sums()), table = at::full({5, 301}, 0, sums());
    accumulate_row_sum(slot, x, 0);
    add_rows_(table, x, rows);
    if (!first_sums.defined()) first_sums = slot, first_table = table;
    EXPECT_TRUE(slot.equal(first_sums)) << threads << " threads";
    EXPECT_TRUE(table.equal(first_table)) << threads << " threads";
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace braid::kernels::loss_kernels_test
