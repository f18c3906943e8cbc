// Buckets cover every gradient once, are launched as they fill, and end as the sum over replicas with tied uses added.
#include "braid/sync/bucketed_all_reduce.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"

namespace braid {
namespace {

ParamSpec spec_of(const std::string& name, int64_t elements, int use = 0, int uses = 1) {
  return {name, replicated({elements}), Init{}, WeightDecay::Yes, use, uses};
}

// wte is used by the first and the last block.
std::vector<BlockSpec> tied_blocks() {
  return {{"embedding", {spec_of("wte", 1500, 0, 2), spec_of("wpe", 10)}},
          {"middle", {spec_of("a", 3000), spec_of("b", 1), spec_of("c", 1024)}},
          {"head", {spec_of("ln", 7), spec_of("wte", 1500, 1, 2)}}};
}

SyncSpec small_buckets() {
  SyncSpec spec;
  spec.bucket_mb = 0.008;
  spec.first_bucket_mb = 0.004;
  return spec;
}

void fill(at::Tensor slice, float value) {
  float* p = slice.mutable_data_ptr<float>();
  for (int64_t i = 0; i < slice.numel(); ++i) p[i] = value;
}

void expect_all(const at::Tensor& tensor, float value) {
  const float* p = tensor.const_data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) ASSERT_EQ(p[i], value);
}

// What rank `rank` adds to parameter number `param` by use `use`.
float contribution(int rank, int param, int use) { return static_cast<float>(rank + 1 + 10 * param + 100 * use); }

void write_gradients(ParamStore& store, int rank) {
  for (Parameter& param : store.params()) {
    float fast = 0;
    for (const UseGrad& use : param.use_grads) {
      fast += contribution(rank, param.index, use.use);
      fill(use.slice, store.reduction() == Reduction::Fast ? fast : contribution(rank, param.index, use.use));
    }
  }
}

float total(const Parameter& param, int ranks) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const int use : param.local_uses) sum += contribution(rank, param.index, use);
  }
  return sum;
}

TEST(BucketPlan, CoversEverySliceOnceInTheOrderOfBackward) {
  for (const Reduction reduction : {Reduction::Fast, Reduction::Reproducible}) {
    const ParamStore store(tied_blocks(), reduction, at::kFloat, 1);
    const BucketPlan plan = bucket_plan(store, small_buckets());
    std::vector<int> covered(static_cast<size_t>(store.flat_grads().numel()));
    for (const auto& bucket : plan.buckets) {
      EXPECT_GT(bucket.num_params, 0);
      for (int64_t i = bucket.begin; i < bucket.end; ++i) ++covered[static_cast<size_t>(i)];
    }
    for (const int times : covered) ASSERT_EQ(times, 1);
    EXPECT_GT(plan.buckets.size(), 2u);
    EXPECT_GT(plan.buckets[0].begin, plan.buckets[1].begin);
    EXPECT_EQ(plan.of_param.at("wte").size(), reduction == Reduction::Fast ? 1u : 2u);
  }
}

TEST(BucketedAllReduce, GradientsAreSumsOverReplicas) {
  for (const Reduction reduction : {Reduction::Fast, Reduction::Reproducible}) {
    for (const int ranks : {1, 2, 3, 5}) {
      run_ranks(ranks, [&](Communicator& world) {
        ParamStore store(tied_blocks(), reduction, at::kFloat, 1);
        const auto alone = world.split(world.rank(), 0, "tied");
        BucketedAllReduce sync(small_buckets(), store, {world, *alone});
        for (int step = 0; step < 3; ++step) {
          write_gradients(store, world.rank());
          for (auto param = store.params().rbegin(); param != store.params().rend(); ++param) sync.ready(*param);
          sync.flush();
          sync.finish();
          for (const Parameter& param : store.params()) expect_all(param.main_grad, total(param, ranks));
        }
        const int64_t bytes = 2 * store.flat_grads().numel() * 4 * (ranks - 1) / ranks;
        EXPECT_NEAR(static_cast<double>(sync.bytes_sent()), 3.0 * static_cast<double>(bytes), 200);
      });
    }
  }
}

TEST(BucketedAllReduce, TiedUsesOnTwoStagesAreAdded) {
  for (const Reduction reduction : {Reduction::Fast, Reduction::Reproducible}) {
    run_ranks(4, [&](Communicator& world) {  // two stages x two replicas
      const int stage = world.rank() / 2, replica = world.rank() % 2;
      const auto data = world.split(stage, 0, "data");
      const auto tied = world.split(replica, 0, "tied");
      const auto blocks = tied_blocks();
      ParamStore store({blocks[stage == 0 ? 0 : 2]}, reduction, at::kFloat, 1);
      BucketedAllReduce sync(small_buckets(), store, {*data, *tied});
      fill(store["wte"].main_grad, static_cast<float>(1 << world.rank()));
      for (const Parameter& param : store.params()) sync.ready(param);
      sync.finish();
      expect_all(store["wte"].main_grad, 15);
    });
  }
}

TEST(BucketedAllReduce, AParameterThatIsReadyTwiceOrNeverIsOurMistake) {
  run_ranks(1, [&](Communicator& world) {
    ParamStore store(tied_blocks(), Reduction::Fast, at::kFloat, 1);
    BucketedAllReduce sync(small_buckets(), store, {world, world});
    EXPECT_THROW(sync.flush(), InternalError);
    sync.ready(store["a"]);
    EXPECT_THROW(sync.ready(store["a"]), InternalError);
  });
}

}  // namespace
}  // namespace braid
