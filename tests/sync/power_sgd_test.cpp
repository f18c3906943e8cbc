// Low-rank compression: exact where a gradient has that rank, best directions found over steps, and none ever lost.
#include <ATen/ops/outer.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "braid/sync/reducers/power_sgd_reducer.h"
#include "tests/sync/reducer_steps.h"

namespace braid::sync::power_sgd_test {
namespace {

using namespace sync::tests;

at::Tensor doubles(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

TEST(Orthonormal, ColumnsByHand) {
  const at::Tensor columns = doubles({3, 1, 4, 7}).view({2, 2});  // (3, 4) and (1, 7)
  make_orthonormal(columns);
  const double want[] = {0.6, -0.8, 0.8, 0.6};  // (1, 7) less its part along (0.6, 0.8) is (-2.72, 2.04)
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(columns.view({-1})[i].item<double>(), want[i], 1e-15);
}

TEST(Orthonormal, ColumnsThatDependOnOthersBecomeZero) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    const at::Tensor columns = doubles({0, 1, 3, 1, 0, 2, 6, 0, 0, 3, 9, 0}).view({3, 4}).to(type);
    make_orthonormal(columns);
    const at::Tensor products = columns.t().mm(columns);
    const at::Tensor want = doubles({0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}).view({4, 4}).to(type);
    EXPECT_LT(products.sub(want).abs().max().item<double>(), type == at::kFloat ? 1e-6 : 1e-14);
  }
}

TEST(PowerSgd, RankThatPays) {
  EXPECT_EQ(PowerSgdReducer::rank_of({40, 30}, 2), 2);
  EXPECT_EQ(PowerSgdReducer::rank_of({40, 30}, 100), 0);  // 30 (40 + 30) > 40 x 30
  EXPECT_EQ(PowerSgdReducer::rank_of({8, 5, 5}, 2), 2);   // 8 x 25
  EXPECT_EQ(PowerSgdReducer::rank_of({30}, 2), 0);
  EXPECT_EQ(PowerSgdReducer::rank_of({}, 2), 0);
  EXPECT_EQ(PowerSgdReducer::rank_of({2, 2}, 1), 0);
}

const std::vector<NamedShape> kMatrix = {{"m", {6, 5}}};

// The sum over ranks of what `gradient(rank, step)` says, step by step, and each rank's last residual's norm.
struct Heard {
  std::vector<at::Tensor> sums;
  double owed = 0;
};
template <class Gradient>
std::vector<Heard> run(int rank_of_matrix, int steps, const Gradient& gradient) {
  const auto shapes = layout(kMatrix, 1);
  return by_rank(2, [&](Communicator& world) {
    PowerSgdReducer reducer(world, rank_of_matrix, 1);
    reducer.plan(shapes);
    Heard mine;
    for (int step = 0; step < steps; ++step) {
      const at::Tensor flat = at::zeros({num_flat(shapes)}, at::kDouble);
      flat.narrow(0, 0, 30).copy_(gradient(world.rank(), step).view({-1}));
      reduce(reducer, shapes, flat, step);
      mine.sums.push_back(flat.narrow(0, 0, 30).view({6, 5}));
    }
    for (const ReducerState& each : reducer.state()) {
      if (each.kind == ReducerState::Kind::Residual) mine.owed = each.tensor.norm().item<double>();
    }
    return mine;
  });
}

double distance(const at::Tensor& a, const at::Tensor& b) { return a.sub(b).norm().item<double>(); }

// Both ranks' gradients have the same column space, of the rank that travels: one step tells all.
TEST(PowerSgd, AGradientOfThatRankTravelsWhole) {
  const at::Tensor u = doubles({1, 2, -1, 0, 3, 1}), v = doubles({2, 0, 1, -1, 4}), w = doubles({0, 1, 1, 1, -2});
  const auto gradient = [&](int rank, int) { return at::outer(u, rank == 0 ? v : w); };
  for (const Heard& each : run(1, 1, gradient)) {
    EXPECT_LT(distance(each.sums[0], at::outer(u, v.add(w))), 1e-12);
    EXPECT_LT(each.owed, 1e-12);
  }
}

// For a constant gradient the warm start finds the leading direction: algorithm 1 is a power iteration.
TEST(PowerSgd, TheWarmStartFindsTheLeadingDirection) {
  const at::Tensor u = doubles({1, 2, -1, 0, 3, 1}), v = doubles({2, 0, 1, -1, 4});
  const at::Tensor u2 = doubles({2, -1, 0, 1, 0, 0}), v2 = doubles({0, 3, -1, -1, 0});  // orthogonal to both
  const at::Tensor m = at::outer(u, v).add(at::outer(u2, v2), 0.3);
  const auto first_only = [&](int, int step) { return step == 0 ? m : m.mul(0); };
  const auto sums = run(1, 12, first_only)[0].sums;
  at::Tensor told = sums[0].clone();
  for (size_t i = 1; i < sums.size(); ++i) told.add_(sums[i]);
  EXPECT_GT(distance(sums[0], m.mul(2)), 0.1);
  EXPECT_LT(distance(told, m.mul(2)), 1e-3 * m.norm().item<double>());
}

// Zero gradients make Q zero, which would stay zero for ever.
TEST(PowerSgd, AGradientThatWasZeroIsHeardAgain) {
  const at::Tensor u = doubles({1, 2, -1, 0, 3, 1}), v = doubles({2, 0, 1, -1, 4});
  const auto gradient = [&](int, int step) { return at::outer(u, v).mul(step < 3 ? 0 : 1); };
  const auto sums = run(2, 4, gradient)[0].sums;
  EXPECT_EQ(sums[2].norm().item<double>(), 0);
  EXPECT_LT(distance(sums[3], at::outer(u, v).mul(2)), 1e-10);
}

}  // namespace
}  // namespace braid::sync::power_sgd_test
