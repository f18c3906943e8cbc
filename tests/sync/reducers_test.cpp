// Reducers one by one: plain, narrow, late.
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "braid/base/errors.h"
#include "braid/sync/grad_reducer.h"
#include "braid/sync/reducers/late_reducer.h"
#include "braid/sync/reducers/make_reducer.h"
#include "braid/sync/reducers/narrow_reducer.h"
#include "tests/sync/reducer_steps.h"

namespace braid::sync::reducers_test {
namespace {

using namespace sync::tests;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One bucket of one slice with these elements on rank 0, 1, ...
std::vector<at::Tensor> reduced(const std::vector<std::vector<float>>& values, WireType wire) {
  return by_rank(static_cast<int>(values.size()), [&](Communicator& world) {
    const auto& mine = values[world.rank()];
    const auto one = layout({{"x", {static_cast<int64_t>(mine.size())}}}, 1, at::kFloat);
    NarrowReducer reducer(world, wire);
    reducer.plan(one);
    const at::Tensor flat = at::zeros({num_flat(one)}, one.options);
    for (size_t i = 0; i < mine.size(); ++i) set(flat, static_cast<int64_t>(i), mine[i]);
    reduce(reducer, one, flat, 0);
    return flat.narrow(0, 0, static_cast<int64_t>(mine.size()));
  });
}

// 1 + 2^-8 lies half-way between two bfloat16 and goes to the even one, 1; the sum is formed exactly and rounded once:
// 1 + 2^-7 + 2^-8 + ... would show a running sum in bfloat16.
TEST(NarrowReducer, Bfloat16RoundsEachTermAndTheSumOnce) {
  const float ulp = std::exp2f(-7);
  for (const at::Tensor& sum : reduced({{1 + ulp / 2, 256}, {3, 1}, {0, 1}}, WireType::BFloat16)) {
    EXPECT_EQ(sum[0].item<float>(), 4);
    EXPECT_EQ(sum[1].item<float>(), 258);  // 256 + 1 in bfloat16 is 256
  }
}

TEST(NarrowReducer, Float16SumsOfFiniteGradientsAreFinite) {
  for (const int ranks : {1, 2, 3, 5, 7, 64, 1000}) {
    const float limit = float16_limit(ranks);
    EXPECT_EQ(static_cast<float>(static_cast<_Float16>(limit)), limit);
    EXPECT_LE(limit * static_cast<float>(ranks), 65504) << ranks;
    EXPECT_GT(limit * static_cast<float>(ranks), 65504 * 0.998) << ranks;
  }
  for (const at::Tensor& sum :
       reduced({{1e9, -1e9, 2, 1e9}, {1e9, -70000, 3, -1}, {1e9, 0, 4, 0}}, WireType::Float16)) {
    EXPECT_EQ(sum[0].item<float>(), 3 * float16_limit(3));
    EXPECT_EQ(sum[1].item<float>(), -2 * float16_limit(3));
    EXPECT_EQ(sum[2].item<float>(), 9);
  }
}

TEST(NarrowReducer, Float16KeepsWhatIsNotFinite) {
  for (const at::Tensor& sum : reduced({{static_cast<float>(kInfinity), NAN, 1}, {1, 1, 1}}, WireType::Float16)) {
    EXPECT_EQ(sum[0].item<double>(), kInfinity);
    EXPECT_TRUE(std::isnan(sum[1].item<double>()));
    EXPECT_EQ(sum[2].item<double>(), 2);
  }
}

TEST(LateReducer, TheFirstStepsAreThoseOfTheOtherReducer) {
  const auto shapes = layout(kShapes, 2, at::kFloat);
  run_ranks(2, [&](Communicator& world) {
    LateReducer late(std::make_unique<PlainReducer>(world), std::make_unique<NarrowReducer>(world, WireType::BFloat16),
                     2);
    PlainReducer plain(world);
    late.plan(shapes);
    plain.plan(shapes);
    for (int64_t step = 0; step < 4; ++step) {
      const at::Tensor a = gradients(shapes, world.rank(), step), b = a.clone();
      const int64_t before = late.bytes_sent(), plain_before = plain.bytes_sent();
      reduce(late, shapes, a, step);
      reduce(plain, shapes, b, step);
      EXPECT_EQ(a.equal(b), step < 2) << step;
      EXPECT_EQ(late.bytes_sent() - before, (plain.bytes_sent() - plain_before) / (step < 2 ? 1 : 2));
    }
  });
}

}  // namespace
}  // namespace braid::sync::reducers_test
