// Reducers one by one: plain, narrow, late, node by node.
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "braid/base/errors.h"
#include "braid/sync/grad_reducer.h"
#include "braid/sync/reducers/late_reducer.h"
#include "braid/sync/reducers/make_reducer.h"
#include "braid/sync/reducers/narrow_reducer.h"
#include "braid/sync/reducers/node_reducer.h"
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

std::vector<at::Tensor> by_nodes(int ranks, int per_node, const SyncSpec& spec, const GradLayout& shapes) {
  return by_rank(ranks, [&](Communicator& world) {
    const auto reducer = make_reducer(spec, {world, split_into_nodes(world, world.rank() / per_node)});
    reducer->plan(shapes);
    at::Tensor flat;
    for (int64_t step = 0; step < 2; ++step)
      reduce(*reducer, shapes, flat = gradients(shapes, world.rank(), step), step);
    const int64_t bytes = num_flat(shapes) * 4, part = bytes / per_node, nodes = ranks / per_node;
    EXPECT_EQ(reducer->bytes_across_nodes(), 2 * 2 * (part * (nodes - 1) / nodes));
    EXPECT_EQ(reducer->bytes_sent() - reducer->bytes_across_nodes(), 2 * 2 * (bytes - part));
    return flat;
  });
}

// Sums in float32 whose bits depend on the order of addition.
TEST(NodeReducer, NodesOfPowersOfTwoKeepTheTree) {
  const auto shapes = layout(kShapes, 5, at::kFloat);  // one bucket: bytes divide
  for (const auto& [ranks, per_node] :
       std::vector<std::pair<int, int>>{{4, 2}, {8, 2}, {8, 4}, {6, 2}, {2, 2}, {4, 1}}) {
    const auto plain = by_rank(ranks, [&](Communicator& world) {
      PlainReducer reducer(world);
      reducer.plan(shapes);
      const at::Tensor flat = gradients(shapes, world.rank(), 1);
      reduce(reducer, shapes, flat, 1);
      return flat;
    });
    for (const at::Tensor& sum : by_nodes(ranks, per_node, SyncSpec{}, shapes)) {
      EXPECT_TRUE(sum.equal(plain[0])) << ranks << " ranks, " << per_node << " per node";
    }
  }
}

TEST(NodeReducer, OtherNodesGiveTheSumButNotItsBits) {
  const auto shapes = layout(kShapes, 1, at::kFloat);
  int num_different = 0;
  const auto plain = by_rank(6, [&](Communicator& world) {
    PlainReducer reducer(world);
    reducer.plan(shapes);
    const at::Tensor flat = gradients(shapes, world.rank(), 1);
    reduce(reducer, shapes, flat, 1);
    return flat;
  });
  const auto sums = by_rank(6, [&](Communicator& world) {  // 1024 elements do not divide by 3
    const auto reducer = make_reducer(SyncSpec{}, {world, split_into_nodes(world, world.rank() / 3)});
    reducer->plan(shapes);
    const at::Tensor flat = gradients(shapes, world.rank(), 1);
    reduce(*reducer, shapes, flat, 1);
    return flat;
  });
  for (const at::Tensor& sum : sums) {
    EXPECT_LT(sum.sub(plain[0]).abs().max().item<double>(), 1e-5);
    EXPECT_TRUE(sum.equal(sums[0]));
    num_different += !sum.equal(plain[0]);
  }
  EXPECT_EQ(num_different, 6);
}

TEST(NodeReducer, OnlyWhatLeavesTheNodeIsNarrow) {
  SyncSpec spec;
  spec.compression = CompressionKind::BFloat16;
  const auto shapes = layout(kShapes, 1, at::kFloat);
  const auto one_node = by_rank(2, [&](Communicator& world) {
    const auto reducer = make_reducer(spec, {world, split_into_nodes(world, 0)});
    reducer->plan(shapes);
    const at::Tensor flat = gradients(shapes, world.rank(), 0);
    reduce(*reducer, shapes, flat, 0);
    EXPECT_EQ(reducer->bytes_across_nodes(), 0);
    return flat;
  });
  EXPECT_TRUE(one_node[0].equal(gradients(shapes, 0, 0).add(gradients(shapes, 1, 0))));
}

TEST(NodeGroups, ContinueTheTreeWhereNodesAreRunsOfPowersOfTwo) {
  const auto continues = [](const std::vector<int>& node_of_rank) {
    return by_rank(static_cast<int>(node_of_rank.size()), [&](Communicator& world) -> int {
      return split_into_nodes(world, node_of_rank[world.rank()]).continues_tree;
    })[0];
  };
  EXPECT_TRUE(continues({5, 5, 7, 7}));
  EXPECT_TRUE(continues({1, 1, 2, 2, 3, 3}));
  EXPECT_TRUE(continues({3, 4, 5}));
  EXPECT_TRUE(continues({2, 2, 2}));
  EXPECT_FALSE(continues({0, 1, 0, 1}));
  EXPECT_FALSE(continues({0, 0, 0, 1, 1, 1}));
  EXPECT_THROW(continues({0, 0, 1}), ConfigError);
}

}  // namespace
}  // namespace braid::sync::reducers_test
