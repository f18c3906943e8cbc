// Steps of a pipeline on data ranks that fail on all of them, late in backward, when some sums are on their way: the
// next step is as if they had not been tried, and gradients that were kept from before are still there.
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <stdexcept>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/keyed_dropout.h"
#include "tests/module/two_pipelines.h"

namespace braid::modules::failed_steps_test {
namespace {

using namespace two_pipelines;

constexpr int kMicrobatches = 3;

enum class Steps { Succeed, FailOnce };

// The parameters of both replicas, of one rank each. Gradients are never cleared.
Tensors trained(const SyncSpec& sync, Steps steps) {
  std::vector<int> until_failure(2, 0);  // backwards, by replica; 0: none fails
  Pair pair{Model(1), Model(2)};
  std::vector<LayerList> layers;
  for (size_t replica = 0; replica < 2; ++replica) {
    pair[replica].between = [&left = until_failure[replica]](at::Tensor x) {
      const auto count = [&left](const at::Tensor& gradient) {
        if (left > 0 && --left == 0) throw std::runtime_error("not today");
        return gradient;
      };
      if (x.requires_grad()) x.register_hook(count);
      return x;
    };
    layers.push_back(pair[replica].layers());
  }
  const auto data = batches();
  run_ranks(2, [&](Communicator& world) {
    const auto rank = static_cast<size_t>(world.rank());
    const auto pipe = world.split(world.rank(), 0, "pipe");
    ModulePipeline pipeline(
        layers[rank], *pipe,
        {.schedule = schedule::one_f_one_b(1, kMicrobatches), .loss = loss_of, .data = &world, .sync = sync});
    torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
    for (size_t step = 0; step < data.size(); ++step) {
      const Batch batch = data[step].half(world.rank());
      if (steps == Steps::FailOnce && step == 1) {
        until_failure[rank] = kMicrobatches;
        EXPECT_THROW(pipeline.step({batch.x}, {batch.y}), std::runtime_error);
      }
      pipeline.step({batch.x}, {batch.y});
      pipeline.update(optimizer);
    }
  });
  Tensors all = pair[0].parameters();
  for (const at::Tensor& parameter : pair[1].parameters()) all.push_back(parameter);
  return all;
}

TEST(FailedSteps, LeaveNothingBehind) {
  for (const SyncSpec& sync :
       {SyncSpec{}, small_buckets(), SyncSpec{.zero = 1}, SyncSpec{.replication = ReplicationKind::LocalSgd}}) {
    SCOPED_TRACE(cat(sync.replication, ", zero ", sync.zero, ", overlap ", sync.overlap));
    const Tensors want = trained(sync, Steps::Succeed), got = trained(sync, Steps::FailOnce);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << "parameter " << i;
  }
}

// Sums of sharded gradients may be under way, of other microbatches on each rank.
TEST(FailedSteps, WithShardedGradientsAreTheLast) { EXPECT_THROW(trained({.zero = 2}, Steps::FailOnce), RunError); }

// Dropout depends on the number of the step.
TEST(FailedSteps, AreNotCounted) {
  std::vector<double> losses;
  for (const char* const failure : {"none", "targets", "layer"}) {
    torch::manual_seed(3);
    bool fails = false;
    LayerList layers;
    layers.add("fc", torch::nn::Linear(4, 4)).add("drop", KeyedDropout(0.5));
    layers.add("maybe",
               [&fails](const at::Tensor& x) { return fails ? throw std::runtime_error("not today") : x * 2; });
    run_ranks(1, [&](Communicator& pipe) {
      ModulePipeline model(layers, pipe, {.schedule = schedule::gpipe(1, 2), .loss = loss_of});
      const at::Tensor x = at::ones({8, 4});
      model.step({x}, {x});
      fails = failure == std::string("layer");
      if (fails) {
        EXPECT_THROW(model.step({x}, {x}), std::runtime_error);
      }
      if (failure == std::string("targets")) {
        EXPECT_THROW(model.step({x}, {at::ones({3, 4})}), ConfigError);
      }
      fails = false;
      losses.push_back(*model.step({x}, {x}));
    });
  }
  EXPECT_EQ(losses[1], losses[0]);
  EXPECT_EQ(losses[2], losses[0]);
}

}  // namespace
}  // namespace braid::modules::failed_steps_test
