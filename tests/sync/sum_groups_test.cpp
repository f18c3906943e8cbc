// Parameters of which other ranks hold copies than of their neighbours have sums and buckets of their own.
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/sync/make_replication.h"

namespace braid::sync::sum_groups_test {
namespace {

// Dense parameters and experts take turns.
std::vector<layout::BlockSpec> expert_blocks(int expert) {
  const auto dense = [](const std::string& name, int64_t rows) {
    return layout::ParamSpec{name, mesh::replicated({rows})};
  };
  const auto of_experts = [&](const std::string& name, int64_t rows) {
    return layout::ParamSpec{name, mesh::split_dim({2 * rows, 3}, 0, 2 * rows, {expert, 2, mesh::Axis::Expert})};
  };
  return {{"a", {dense("a.dense", 1500), of_experts("a.up", 700), of_experts("a.down", 300)}},
          {"b", {dense("b.dense", 3000), of_experts("b.up", 1), dense("b.norm", 10)}},
          {"c", {of_experts("c.up", 1000), dense("c.dense", 1)}}};
}

std::vector<SumGroup> experts_apart(Communicator& world) {
  std::vector<SumGroup> apart;
  apart.push_back(
      {mesh::kSampleAxes - mesh::AxisSet{mesh::Axis::Expert}, world.split(world.rank() % 2, world.rank(), "experts")});
  return apart;
}

// Ranks 0 and 1 have other experts, as have 2 and 3, and so on. Every rank is ready in an order of its own.
TEST(BucketedAllReduce, AParameterIsSummedOverTheRanksThatHoldCopiesOfIt) {
  constexpr int kRanks = 6;
  for (const CompressionKind compression : {CompressionKind::None, CompressionKind::BFloat16}) {
    run_ranks(kRanks, [&](Communicator& world) {
      const int expert = world.rank() % 2;
      param::ParamStore store(expert_blocks(expert), Reduction::Fast, at::kFloat, 1);
      const auto alone = world.split(world.rank(), 0, "alone");
      SyncSpec spec;
      spec.bucket_mb = spec.first_bucket_mb = 0.004;
      spec.compression = compression;
      spec.overlap = OverlapChoice::On;
      const auto sync =
          make_replication(spec, {world, *alone, *alone, *alone}, {.store = store, .sum_groups = experts_apart(world)});
      for (int step = 0; step < 4; ++step) {
        sync->begin_step(step);
        for (const param::Parameter& param : store.params()) param.main_grad.fill_(1 << world.rank());
        const size_t count = store.params().size();
        for (size_t i = 0; i < count; ++i) {
          const size_t at = (i + static_cast<size_t>(world.rank() * (step + 1))) % count;
          sync->ready(store.params()[world.rank() < 3 ? at : count - 1 - at]);
        }
        sync->finish();
        for (const param::Parameter& param : store.params()) {
          const bool dense = param.placement.sharded == mesh::AxisSet();
          const int want = dense ? 63 : expert == 0 ? 1 + 4 + 16 : 2 + 8 + 32;
          EXPECT_TRUE(param.main_grad.equal(at::full_like(param.main_grad, want))) << param.name;
        }
      }
    });
  }
}

TEST(BucketPlan, DenseParametersAndExpertsShareNoBucket) {
  const param::ParamStore store(expert_blocks(0), Reduction::Fast, at::kFloat, 1);
  const auto is_dense = [](const param::Parameter& param) { return param.placement.sharded == mesh::AxisSet(); };
  const auto is_of_experts = [&](const param::Parameter& param) { return !is_dense(param); };
  std::vector<int> covered(static_cast<size_t>(store.flat_grads().numel()));
  for (const BucketPlan& plan : {bucket_plan(store, {}, is_dense), bucket_plan(store, {}, is_of_experts)}) {
    EXPECT_EQ(plan.of_param.size(), 4u);
    for (const BucketShape& bucket : plan.buckets) {
      for (int64_t i = bucket.begin; i < bucket.end; ++i) ++covered[static_cast<size_t>(i)];
    }
  }
  for (const int times : covered) ASSERT_EQ(times, 1);
}

TEST(MakeReplication, RefusesExpertsWhereOneGroupIsForAllParameters) {
  run_ranks(2, [&](Communicator& world) {
    const auto refusal = [&](const SyncSpec& spec, const param::Sharding& sharding) -> std::string {
      param::ParamStore store(expert_blocks(world.rank()),
                              param::StoreOptions{Reduction::Fast, at::kFloat, 1, sharding});
      try {
        make_replication(spec, {world, world, world, world}, {.store = store});
      } catch (const InternalError& error) {
        return error.what();
      }
      return "nothing was refused";
    };
    const auto says = [](const std::string& said, const std::string& what) {
      EXPECT_NE(said.find("a.up: " + what), said.npos) << said;
    };
    says(refusal({}, {}), "gradients are summed over ranks for which there is a group");
    says(refusal({.zero = 1}, {param::Sharded::Optimizer, world.rank(), 2}), "sharding keeps one group");
    says(refusal({.replication = ReplicationKind::LocalSgd}, {}), "averaging of weights keeps one group");
    says(refusal({.replication = ReplicationKind::ParameterServer}, {}), "a parameter server keeps one group");
  });
}

}  // namespace
}  // namespace braid::sync::sum_groups_test
