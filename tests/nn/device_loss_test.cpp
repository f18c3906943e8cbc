// The loss's and the scatter's device kernels, run by threads of the host, against plain loops in float64
// (device_bodies_test.cpp).
#include "braid/nn/kernels/team_loss.h"
#include "tests/nn/device_memory.h"

namespace braid::kernels::device_loss_test {
namespace {

template <class T>
class DeviceLoss : public testing::Test {};
using Types = testing::Types<float, double, c10::BFloat16, c10::Half>;
TYPED_TEST_SUITE(DeviceLoss, Types);

template <class T, int N>
void expect_loss(int team_size) {
  using M = MathOf<T>;
  constexpr int64_t kReal = 35;  // a tail beyond the packs, then padding
  auto x = some<T>(kRows * kWidth, 1, 8);
  x[3] = -INFINITY;
  for (int j = 0; j < 16; ++j) x[kWidth + j] = -INFINITY;  // all that some threads see
  const std::vector<int64_t> column{2, 34, -1, 0, 7};
  Memory<T> xm(x);
  Memory<M> max(kRows), sum(kRows), target(kRows);
  const SoftmaxSumRows<T> sums{{xm.data(), kWidth, kReal, column.data()}, max.data(), sum.data(), target.data()};
  run_team(team_size, [&](const HostTeam& team) {
    for (int64_t row = 0; row < kRows; ++row) team_softmax_sums<N>(sums, row, team);
  });
  Numbers all_max, all_sum, all_target, gradient(kRows * kWidth), scale;
  const double step = static_cast<double>(M(0.25));
  for (int64_t row = 0; row < kRows; ++row) {
    const double* v = &x[row * kWidth];
    all_max.push_back(*std::max_element(v, v + kReal));
    double total = 0;
    for (int64_t j = 0; j < kReal; ++j) total += std::exp(v[j] - all_max.back());
    all_sum.push_back(total);
    all_target.push_back(column[row] < 0 ? 0 : v[column[row]]);
    scale.push_back(static_cast<double>(static_cast<M>(step / total)));
    for (int64_t j = 0; j < kReal; ++j) {
      gradient[row * kWidth + j] = step * (std::exp(v[j] - all_max.back()) / total - (j == column[row]));
    }
  }
  expect_near(max.read(kRows), all_max, 0, "max");
  expect_near(sum.read(kRows), all_sum, kRounding<M> * 10, "sum");
  expect_near(target.read(kRows), all_target, 0, "target");
  Memory<M> scales(scale), steps(Numbers{step});
  const TeamSoftmaxGradient<T> call{{xm.data(), kWidth, kReal, column.data()}, max.data(), scales.data(), steps.data()};
  run_team(team_size, [&](const HostTeam& team) {
    for (int64_t row = 0; row < kRows; ++row) team_softmax_gradient<N>(call, row, team);
  });
  expect_near(xm.read(kRows * kWidth), gradient, kRounding<T>, "gradient");
}

TYPED_TEST(DeviceLoss, SumsAndGradient) {
  for (const int team_size : {1, 3}) {
    expect_loss<TypeParam, kPack<TypeParam>>(team_size);
    expect_loss<TypeParam, 1>(team_size);
  }
}

TEST(DeviceLossEdge, NothingRealAndNaN) {
  Memory<float> x(Numbers{1, 2, 3, 4}), out(3);
  const int64_t column = -1;
  SoftmaxSumRows<float> call{{x.data(), 4, 0, &column}, out.data(), out.data() + 1, out.data() + 2};
  run_team(2, [&](const HostTeam& team) { team_softmax_sums<4>(call, 0, team); });
  EXPECT_EQ(out.read(3), (Numbers{-INFINITY, 0, 0}));
  x.data()[2] = NAN;
  call.logits.real = 4;
  run_team(2, [&](const HostTeam& team) { team_softmax_sums<1>(call, 0, team); });
  EXPECT_EQ(out.data()[0], 4);
  EXPECT_TRUE(std::isnan(out.data()[1]));
}

TYPED_TEST(DeviceLoss, RowsAreAddedInOrder) {
  using T = TypeParam;
  using M = MathOf<T>;
  const std::vector<int64_t> rows{0, 2, 2, 2, 3}, order{4, 0, 2, 3, 1};
  const auto x = some<T>(5 * kWidth, 1);
  const auto table = some<M>(4 * kWidth, 2);
  Memory<T> xm(x);
  Memory<M> tm(table);
  const SortedRows<T> call{xm.data(), tm.data(), rows.data(), order.data(), 5, kWidth};
  run_team(3, [&](const HostTeam& team) {
    for (int64_t k = 0; k < 5; ++k) team_add_rows<kPack<T>>(call, k, team);
  });
  std::vector<M> expected(4 * kWidth);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<M>(table[i]);
  for (size_t k = 0; k < 5; ++k) {
    for (int64_t j = 0; j < kWidth; ++j) expected[rows[k] * kWidth + j] += static_cast<M>(x[order[k] * kWidth + j]);
  }
  expect_near(tm.read(4 * kWidth), Numbers(expected.begin(), expected.end()), 0, "table");
}

}  // namespace
}  // namespace braid::kernels::device_loss_test
