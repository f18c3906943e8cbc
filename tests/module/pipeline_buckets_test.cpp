// How the gradients of a pipeline's data ranks travel, what [sync] is refused there, and what update() is for.
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "braid/base/errors.h"
#include "braid/module/inner_graph.h"
#include "tests/module/two_pipelines.h"

namespace braid::modules::pipeline_buckets_test {
namespace {

using namespace two_pipelines;

// Returns the all-reduces of the first stage's ranks, where only gradients are reduced.
int all_reduces_of_a_step(const SyncSpec& sync) {
  Pair pair = replicas();
  int counted = 0;
  on_two_pipelines(pair, sync, one_stage_each(), [&](ModulePipeline& pipeline, CountedCollectives& data, int replica) {
    const Batch batch = batches()[0].half(replica);
    const bool last = pipeline.step({batch.x}, {batch.y}).has_value();
    const int before = data.all_reduces();
    pipeline.step({batch.x}, {batch.y});
    if (!last && replica == 0) counted = data.all_reduces() - before;
  });
  return counted;
}

// Eight parameters are trained in the first stage.
TEST(PipelineReplicas, ThereIsACollectivePerBucketNotPerParameter) {
  EXPECT_EQ(all_reduces_of_a_step({.overlap = OverlapChoice::On}), 1);
  EXPECT_EQ(all_reduces_of_a_step(small_buckets()), 3);
}

// Where backward comes to the layer between, all layers after it have their gradients. In the second step the buckets
// that wait for what is never used are the last to leave.
TEST(PipelineReplicas, BucketsLeaveWhileTheLastBackwardRuns) {
  for (const char* overlap : {"on", "off"}) {
    Pair pair = replicas();
    int meanwhile = 0;
    std::function<void()> look;
    pair[0].between = [&](const at::Tensor& x) { return writable_aliases({x}, [&] { look(); }).front(); };
    SyncSpec sync = small_buckets();
    sync.overlap = value_of<OverlapChoice>(overlap).value();
    on_two_pipelines(pair, sync, one_stage_each(),
                     [&](ModulePipeline& pipeline, CountedCollectives& data, int replica) {
                       const Batch batch = batches()[0].half(replica);
                       const bool first_stage = pipeline.parameters().size() > 2;
                       if (replica == 0 && first_stage) look = [&] { meanwhile = data.all_reduces(); };
                       pipeline.step({batch.x}, {batch.y});
                       const int before = data.all_reduces();
                       pipeline.step({batch.x}, {batch.y});
                       if (replica == 0 && first_stage) meanwhile -= before;
                     });
    EXPECT_EQ(meanwhile > 0, sync.overlap == OverlapChoice::On) << overlap;
  }
}

TEST(PipelineReplicas, CompressionHalvesTheBytes) {
  std::map<CompressionKind, int64_t> bytes;
  for (const auto compression : {CompressionKind::None, CompressionKind::BFloat16}) {
    Pair pair = replicas();
    on_two_pipelines(pair, {.compression = compression}, one_stage_each(),
                     [&](ModulePipeline& pipeline, CountedCollectives&, int replica) {
                       const Batch batch = batches()[0].half(replica);
                       const bool last = pipeline.step({batch.x}, {batch.y}).has_value();
                       if (last && replica == 0) bytes[compression] = pipeline.bytes_sent();
                     });
  }
  // The head's two parameters, padded to 1,024 elements each: float64, and 2 bytes for each of theirs.
  EXPECT_EQ(bytes[CompressionKind::None], 2 * 1024 * 8);
  EXPECT_EQ(bytes[CompressionKind::BFloat16], 2 * 1024 * 2);
}

std::string refusal(
    const SyncSpec& sync, const std::function<void(Pair&)>& change = [](Pair&) {}) {
  Pair pair = replicas();
  change(pair);
  try {
    on_two_pipelines(pair, sync, one_stage_each(), [](ModulePipeline&, CountedCollectives&, int) {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(PipelineReplicas, WhatDoesNotWorkIsRefusedByName) {
  const auto says = [](const std::string& said, const std::string& words) {
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  says(refusal({.replication = ReplicationKind::ParameterServer}),
       "sync.replication = \"parameter-server\": must be \"all-reduce\" with a pipeline of user modules, since");
  says(refusal({.replication = ReplicationKind::DiLoCo, .zero = 1}),
       "sync.replication = \"diloco\": must be \"all-reduce\" with sharded optimizer, since");
  const std::string both = refusal({.compression_rank = 0, .zero_group = 3}, [](Pair& pair) {
    for (Model& model : pair) model.head->to(at::kBFloat16);
  });
  says(both, "sync.compression_rank = 0: must be at least 1");
  says(both, "sync.zero_group = 3: must be 0 or divide the 2 ranks");
  says(both, "head.0 = BFloat16: must be float32 or float64");
  EXPECT_EQ(refusal({.zero = 1}), "nothing was refused");
}

TEST(PipelineReplicas, WhatIsSharedOutNeedsUpdate) {
  for (const SyncSpec& sync : {SyncSpec{.zero = 1}, SyncSpec{.replication = ReplicationKind::LocalSgd}}) {
    Pair pair = replicas();
    on_two_pipelines(pair, sync, one_stage_each(), [](ModulePipeline& pipeline, CountedCollectives&, int replica) {
      const Batch batch = batches()[0].half(replica);
      torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
      for (int step = 0; step < 2; ++step) {
        pipeline.step({batch.x}, {batch.y});
        pipeline.update(optimizer);
      }
      pipeline.step({batch.x}, {batch.y});
      EXPECT_THROW(pipeline.step({batch.x}, {batch.y}), InternalError);
    });
  }
}

TEST(PipelineReplicas, WhatIsOnDiskNeedsAnOptimizerThere) {
  Pair pair = replicas();
  const ModelMemory memory{.gradients = Kept::OnDisk, .folders = {testing::TempDir()}};
  const auto body = [](ModulePipeline& pipeline, CountedCollectives&, int replica) {
    const Batch batch = batches()[0].half(replica);
    torch::optim::SGD optimizer(pipeline.parameters(), torch::optim::SGDOptions(0).momentum(0.9));
    pipeline.step({batch.x}, {batch.y});
    EXPECT_THROW(pipeline.update(optimizer), ConfigError);
    EXPECT_THROW(pipeline.update([] { FAIL(); }), ConfigError);
    OptimizerOnDisk disk(optimizer, {{testing::TempDir()}});
    pipeline.update(disk);
    const at::Tensor before = pipeline.parameters()[0].grad().clone();
    pipeline.step({batch.x}, {batch.y});
    EXPECT_TRUE(pipeline.parameters()[0].grad().equal(before)) << "gradients on disk are those of one minibatch";
    pipeline.update(disk);
  };
  on_two_pipelines(pair, {}, one_stage_each(), body, memory);
}

// Frozen when the pipeline was made, released after its first step.
TEST(PipelineReplicas, AParameterReleasedLaterIsTakenInByRetrace) {
  const auto gradients = [](const SyncSpec& sync) {
    Pair pair = replicas();
    on_two_pipelines(pair, sync, one_stage_each(), [&](ModulePipeline& pipeline, CountedCollectives&, int replica) {
      const Batch batch = batches()[0].half(replica);
      const bool first_stage = !pipeline.step({batch.x}, {batch.y}).has_value();
      pipeline.update([] {});
      if (first_stage) pair[replica].branches->frozen->weight.requires_grad_(true);
      pipeline.retrace();
      pipeline.step({batch.x}, {batch.y});
    });
    return Tensors{pair[0].branches->frozen->weight.grad(), pair[1].branches->frozen->weight.grad()};
  };
  const Tensors both = gradients({});
  ASSERT_TRUE(both[0].defined());
  EXPECT_GT(both[0].abs().sum().item<double>(), 0);
  EXPECT_TRUE(both[0].equal(both[1]));
  for (const int zero : {1, 2, 3}) EXPECT_THROW(gradients({.zero = zero}), ConfigError) << zero;
}

}  // namespace
}  // namespace braid::modules::pipeline_buckets_test
