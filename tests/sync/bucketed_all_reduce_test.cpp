// Buckets cover every gradient once, are launched as they fill, and end as the sum over replicas with tied uses added.
#include "braid/sync/bucketed_all_reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/sync/make_replication.h"

namespace braid::sync::bucketed_all_reduce_test {
namespace {

layout::ParamSpec spec_of(const std::string& name, int64_t elements, int use = 0, int uses = 1) {
  return {name, mesh::replicated({elements}), model::Init{}, model::WeightDecay::Yes, use, uses};
}

// wte is used by the first and the last block.
std::vector<layout::BlockSpec> tied_blocks() {
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

// Returns what rank `rank` adds to parameter number `param` by use `use`.
float contribution(int rank, int param, int use) { return static_cast<float>(rank + 1 + 10 * param + 100 * use); }

void write_gradients(param::ParamStore& store, int rank) {
  for (param::Parameter& param : store.params()) {
    float fast = 0;
    for (const param::UseGrad& use : param.use_grads) {
      fast += contribution(rank, param.index, use.use);
      fill(use.slice, store.reduction() == Reduction::Fast ? fast : contribution(rank, param.index, use.use));
    }
  }
}

float total(const param::Parameter& param, int ranks) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const int use : param.local_uses) sum += contribution(rank, param.index, use);
  }
  return sum;
}

TEST(BucketPlan, CoversEverySliceOnceInTheOrderOfBackward) {
  for (const Reduction reduction : {Reduction::Fast, Reduction::Reproducible}) {
    const param::ParamStore store(tied_blocks(), reduction, at::kFloat, 1);
    const BucketPlan plan = bucket_plan(store, small_buckets());
    std::vector<int> covered(static_cast<size_t>(store.flat_grads().numel()));
    for (const auto& bucket : plan.buckets) {
      EXPECT_FALSE(bucket.slices.empty());
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
        param::ParamStore store(tied_blocks(), reduction, at::kFloat, 1);
        const auto alone = world.split(world.rank(), 0, "tied");
        BucketedAllReduce sync(small_buckets(), store, {world, *alone, world, *alone});
        for (int step = 0; step < 3; ++step) {
          write_gradients(store, world.rank());
          for (auto param = store.params().rbegin(); param != store.params().rend(); ++param) sync.ready(*param);
          sync.flush();
          sync.finish();
          for (const param::Parameter& param : store.params()) expect_all(param.main_grad, total(param, ranks));
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
      param::ParamStore store({blocks[stage == 0 ? 0 : 2]}, reduction, at::kFloat, 1);
      BucketedAllReduce sync(small_buckets(), store, {*data, *data, *data, *tied});
      fill(store["wte"].main_grad, static_cast<float>(1 << world.rank()));
      for (const param::Parameter& param : store.params()) sync.ready(param);
      sync.finish();
      expect_all(store["wte"].main_grad, 15);
    });
  }
}

TEST(BucketedAllReduce, AParameterThatIsReadyTwiceOrNeverIsOurMistake) {
  run_ranks(1, [&](Communicator& world) {
    param::ParamStore store(tied_blocks(), Reduction::Fast, at::kFloat, 1);
    BucketedAllReduce sync(small_buckets(), store, {world, world, world, world});
    EXPECT_THROW(sync.flush(), InternalError);
    sync.ready(store["a"]);
    EXPECT_THROW(sync.ready(store["a"]), InternalError);
  });
}

// Every rank is ready in an order of its own; all follow what rank 0 saw in the first step.
TEST(BucketedAllReduce, TheOrderOfLaunchesIsRankZerosOfTheFirstStep) {
  run_ranks(3, [&](Communicator& world) {
    param::ParamStore store(tied_blocks(), Reduction::Fast, at::kFloat, 1);
    const auto alone = world.split(world.rank(), 0, "tied");
    BucketedAllReduce sync(small_buckets(), store, {world, *alone, world, *alone});
    const auto num_buckets = static_cast<int>(sync.launch_order().size());
    ASSERT_GT(num_buckets, 2);
    std::vector<int> forwards(num_buckets), backwards;
    for (int b = 0; b < num_buckets; ++b) forwards[b] = b;
    backwards.assign(forwards.rbegin(), forwards.rend());
    EXPECT_EQ(sync.launch_order(), forwards);
    for (int step = 0; step < 3; ++step) {
      write_gradients(store, world.rank());
      if (world.rank() == 0) {
        for (const param::Parameter& param : store.params()) sync.ready(param);
      } else {
        for (auto param = store.params().rbegin(); param != store.params().rend(); ++param) sync.ready(*param);
      }
      sync.finish();
      for (const param::Parameter& param : store.params()) expect_all(param.main_grad, total(param, 3));
      EXPECT_EQ(sync.launch_order(), backwards);  // the first block's parameters were ready first
    }
  });
}

// From the second step on, buckets are launched in another order than the plan's.
TEST(BucketedAllReduce, WhatIsFinalBeforeTheEndIsTheSum) {
  run_ranks(3, [&](Communicator& world) {
    param::ParamStore store(tied_blocks(), Reduction::Fast, at::kFloat, 1);
    const auto alone = world.split(world.rank(), 0, "tied");
    SyncSpec spec = small_buckets();
    spec.overlap = OverlapChoice::On;
    BucketedAllReduce sync(spec, store, {world, *alone, world, *alone});
    for (int step = 0; step < 3; ++step) {
      write_gradients(store, world.rank());
      int64_t from = 0;
      for (const char* name : {"a", "b", "ln", "c", "wte", "wpe"}) {
        sync.ready(store[name]);
        for (int i = 0; i < 2; ++i) {  // a rank that asks helps with what is sent
          sync.final_from();
          world.barrier().wait_host();
        }
        from = sync.final_from();
        for (const param::Parameter& param : store.params()) {
          if (param.offset >= from) expect_all(param.main_grad, total(param, 3));
        }
      }
      EXPECT_EQ(from, 0);
      sync.finish();
      EXPECT_FALSE(std::ranges::is_sorted(sync.launch_order()));
    }
  });
}

// Gradients of any kind, whose sums depend on the order of addition.
std::vector<float> trained_bits(const SyncSpec& spec, std::vector<std::string>* heard) {
  std::vector<float> bits;
  run_ranks(3, [&](Communicator& world) {
    param::ParamStore store(tied_blocks(), Reduction::Reproducible, at::kFloat, 1);
    const auto alone = world.split(world.rank(), 0, "tied");
    BucketedAllReduce sync(spec, store, {world, *alone, world, *alone});
    if (world.rank() == 0) sync.on_choice = [&](const std::string& choice) { heard->push_back(choice); };
    for (int step = 0; step < 30; ++step) {
      float* p = store.flat_grads().mutable_data_ptr<float>();
      for (param::Parameter& param : store.params()) {
        for (const param::UseGrad& use : param.use_grads) {
          float* slice = use.slice.mutable_data_ptr<float>();
          for (int64_t i = 0; i < use.slice.numel(); ++i) {
            slice[i] =
                std::sin(static_cast<float>((i + 1) * (step + 1))) * std::pow(10.0f, static_cast<float>(world.rank()));
          }
        }
      }
      for (auto param = store.params().rbegin(); param != store.params().rend(); ++param) sync.ready(*param);
      sync.finish();
      if (world.rank() == 1) bits.insert(bits.end(), p, p + store.flat_grads().numel());
    }
  });
  return bits;
}

TEST(BucketedAllReduce, NothingThatIsChosenChangesABit) {
  std::vector<std::string> heard;
  SyncSpec spec = small_buckets();
  spec.overlap = OverlapChoice::On;
  const auto want = trained_bits(spec, &heard);
  EXPECT_TRUE(heard.empty());
  spec.overlap = OverlapChoice::Off;
  EXPECT_EQ(trained_bits(spec, &heard), want);
  EXPECT_TRUE(heard.empty());
  spec.overlap = OverlapChoice::Auto;
  spec.tune_buckets = OnOff::On;
  EXPECT_EQ(trained_bits(spec, &heard), want);
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_TRUE(heard[0].starts_with("sync.overlap = \"o")) << heard[0];
  EXPECT_TRUE(heard[1].starts_with("sync.bucket_mb = ")) << heard[1];
}

TEST(BucketedAllReduce, DeferredBucketsLeaveWhenBackwardIsOver) {
  run_ranks(2, [&](Communicator& world) {
    param::ParamStore store(tied_blocks(), Reduction::Fast, at::kFloat, 1);
    const auto alone = world.split(world.rank(), 0, "tied");
    for (const char* overlap : {"on", "off"}) {
      SyncSpec spec = small_buckets();
      spec.overlap = value_of<OverlapChoice>(overlap).value();
      BucketedAllReduce sync(spec, store, {world, *alone, world, *alone});
      write_gradients(store, world.rank());
      for (auto param = store.params().rbegin(); param != store.params().rend(); ++param) sync.ready(*param);
      EXPECT_EQ(sync.bytes_sent() > 0, spec.overlap == OverlapChoice::On);
      sync.flush();
      EXPECT_GT(sync.bytes_sent(), 0);
      sync.finish();
    }
  });
}

// The bytes of a step, in units of what plain sums send.
TEST(BucketedAllReduce, CompressionBeginsAtItsStep) {
  run_ranks(2, [&](Communicator& world) {
    param::ParamStore store(tied_blocks(), Reduction::Fast, at::kFloat, 1);
    const auto alone = world.split(world.rank(), 0, "alone");
    SyncSpec spec = small_buckets();
    spec.compression = CompressionKind::BFloat16;
    spec.compression_start = 2;
    const auto sync = make_replication(spec, {world, *alone, *alone, *alone}, {.store = store});
    const double plain_bytes = static_cast<double>(store.flat_grads().numel()) * 4;
    const std::vector<double> shares = {1, 1, 0.5, 0.5};
    for (size_t step = 0; step < shares.size(); ++step) {
      const int64_t before = sync->bytes_sent();
      sync->begin_step(static_cast<int64_t>(step));
      write_gradients(store, world.rank());
      for (const param::Parameter& param : store.params()) sync->ready(param);
      sync->finish();
      const auto sent = static_cast<double>(sync->bytes_sent() - before);
      EXPECT_NEAR(sent / plain_bytes, shares[step], 0.01) << "step " << step;
    }
  });
}

}  // namespace
}  // namespace braid::sync::bucketed_all_reduce_test
