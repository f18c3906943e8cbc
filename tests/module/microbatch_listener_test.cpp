// Modules that know where in the step they are: statistics of minibatches, masks of microbatches.
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/deferred_batch_norm.h"
#include "braid/module/keyed_dropout.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace braid::modules::microbatch_listener_test {
namespace {

using torch::nn::BatchNorm1d;
using torch::nn::BatchNorm2d;
using torch::nn::BatchNormOptions;
using torch::nn::Linear;

// Far from zero, so that a variance formed of sums of squares would lose digits.
at::Tensor inputs(int64_t rows) {
  torch::manual_seed(5);
  return at::randn({rows, 3, 2, 4}, at::kDouble) * 2 + 1000;
}

at::Tensor mean_square(const at::Tensor& output, const at::Tensor& target) { return (output - target).square().mean(); }

void expect_close(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_LT((a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>(), 1e-10);
}

void show(DeferredBatchNorm& norm, const at::Tensor& x, const std::vector<int64_t>& rows, Communicator& data) {
  int64_t begin = 0;
  for (size_t micro = 0; micro < rows.size(); ++micro) {
    norm->begin_microbatch({.micro = static_cast<int64_t>(micro)});
    norm(x.narrow(0, begin, rows[micro]));
    begin += rows[micro];
  }
  norm->end_step(data);
}

// The twelve rows of x: eight are one data rank's, in two microbatches, and four the other's: both end with the
// statistics of `whole`.
void expect_shared(std::vector<DeferredBatchNorm>& replicas, const at::Tensor& x, const BatchNorm2d& whole) {
  run_ranks(2, [&](Communicator& data) {
    if (data.rank() == 0) {
      show(replicas[0], x.narrow(0, 0, 8), {5, 3}, data);
    } else {
      show(replicas[1], x.narrow(0, 8, 4), {4}, data);
    }
  });
  for (auto& replica : replicas) {
    expect_close(replica->state().running_mean, whole->running_mean);
    expect_close(replica->state().running_var, whole->running_var);
  }
}

TEST(DeferredBatchNorm, RunningStatisticsAreThoseOfTheWholeMinibatch) {
  for (const std::optional<double> momentum : {std::optional<double>(0.1), std::optional<double>()}) {
    BatchNorm2d whole(BatchNormOptions(3).momentum(momentum));
    DeferredBatchNorm deferred(BatchNormOptions(3).momentum(momentum));
    whole->to(at::kDouble);
    deferred->to(at::kDouble);
    run_ranks(1, [&](Communicator& data) {
      for (const int64_t rows : {12, 9}) {
        const at::Tensor x = inputs(rows);
        whole(x);
        show(deferred, x, {5, 3, 1, rows - 9}, data);
      }
    });
    expect_close(deferred->state().running_mean, whole->running_mean);
    expect_close(deferred->state().running_var, whole->running_var);
    EXPECT_EQ(deferred->state().num_batches_tracked.item<int64_t>(), 2);
    deferred->eval();
    whole->eval();
    expect_close(deferred(inputs(4)), whole(inputs(4)));
  }
}

TEST(DeferredBatchNorm, DataRanksShareTheirStatistics) {
  BatchNorm2d whole(3);
  whole->to(at::kDouble);
  const at::Tensor x = inputs(12);
  whole(x);
  std::vector<DeferredBatchNorm> replicas{DeferredBatchNorm(3), DeferredBatchNorm(3)};
  for (auto& replica : replicas) replica->to(at::kDouble);
  expect_shared(replicas, x, whole);
}

TEST(DeferredBatchNorm, ARankInEvaluationModeMovesWithThoseThatTrain) {
  BatchNorm2d whole(3);
  whole->to(at::kDouble);
  const at::Tensor x = inputs(12);
  whole(x.narrow(0, 0, 8));
  std::vector<DeferredBatchNorm> replicas{DeferredBatchNorm(3), DeferredBatchNorm(3)};
  for (auto& replica : replicas) replica->to(at::kDouble);
  replicas[1]->eval();
  expect_shared(replicas, x, whole);
}

TEST(DeferredBatchNorm, MicrobatchesOfAStepThatFailedDoNotCount) {
  BatchNorm2d whole(3);
  DeferredBatchNorm deferred(3);
  whole->to(at::kDouble);
  deferred->to(at::kDouble);
  const at::Tensor x = inputs(8);
  whole(x);
  run_ranks(1, [&](Communicator& data) {
    deferred->begin_microbatch({.step = 0, .micro = 1});
    deferred(x * 3);
    deferred->begin_microbatch({.step = 1, .micro = 0});
    deferred(x);
    deferred->end_step(data);
  });
  expect_close(deferred->state().running_var, whole->running_var);
}

TEST(DeferredBatchNorm, MicrobatchesAreNormalizedByThemselvesAndCountedOnce) {
  DeferredBatchNorm deferred(3);
  deferred->to(at::kDouble);
  const at::Tensor x = inputs(6);
  run_ranks(1, [&](Communicator& data) {
    deferred->begin_microbatch({.micro = 0});
    const at::Tensor once = deferred(x);
    EXPECT_TRUE(once.equal(deferred(x))) << "computed again";
    EXPECT_NEAR(once.mean().item<double>(), 0, 1e-10);
    deferred->begin_microbatch({.purpose = ForwardPurpose::ShapeTrace});
    deferred(x * 2);
    EXPECT_TRUE(deferred->state().running_mean.eq(0).all().item<bool>()) << "moved at the end only";
    deferred->end_step(data);
    deferred->end_step(data);  // of a step without this module
  });
  EXPECT_EQ(deferred->state().num_batches_tracked.item<int64_t>(), 1);
  BatchNorm2d whole(3);
  whole->to(at::kDouble);
  whole(x);
  expect_close(deferred->state().running_var, whole->running_var);
}

TEST(DeferredBatchNorm, LayersAreReplacedOverTheSameTensors) {
  BatchNorm1d norm(4);
  norm->weight.requires_grad_(false);
  LayerList layers;
  layers.add("norm", norm).add("block", torch::nn::Sequential({{"bn", torch::nn::AnyModule(BatchNorm1d(4))}}));
  EXPECT_EQ(defer_batch_norms(layers), std::vector<std::string>{"block.bn"});
  const auto deferred = std::dynamic_pointer_cast<DeferredBatchNormImpl>(layers[0].module);
  ASSERT_TRUE(deferred);
  EXPECT_TRUE(deferred->state().weight.is_same(norm->weight));
  EXPECT_TRUE(deferred->named_buffers()["running_var"].is_same(norm->running_var));
  EXPECT_FALSE(deferred->state().weight.requires_grad());
  const auto copy = std::dynamic_pointer_cast<DeferredBatchNormImpl>(deferred->clone());
  EXPECT_FALSE(copy->state().bias.is_same(norm->bias));
  EXPECT_TRUE(copy->state().bias.equal(norm->bias));
}

// The first layer's input is the same for all cuts, so its statistics are; an ordinary batch norm counts microbatches.
TEST(DeferredBatchNorm, InAPipelineItSeesStepsAndABatchNormMicrobatches) {
  torch::manual_seed(2);
  BatchNorm1d whole(6), plain(6), given(6);
  for (BatchNorm1d norm : {whole, plain, given}) norm->to(at::kDouble);
  Linear fc(6, 6);
  fc->to(at::kDouble);
  LayerList layers;
  layers.add("norm", given);
  EXPECT_TRUE(defer_batch_norms(layers).empty());
  layers.add("fc", fc).add("plain", plain);
  const at::Tensor x = inputs(10).flatten(1).narrow(1, 0, 6), y = at::zeros({10, 6}, at::kDouble);
  whole(x);
  whole(x);
  run_ranks(2, [&](Communicator& pipe) {
    ModulePipeline pipeline(layers, pipe, {.schedule = schedule::one_f_one_b(2, 4), .loss = mean_square});
    for (int step = 0; step < 2; ++step) pipeline.step({x}, {y});
    pipeline.forward({x});
  });
  expect_close(given->running_mean, whole->running_mean);
  expect_close(given->running_var, whole->running_var);
  EXPECT_EQ(given->num_batches_tracked.item<int64_t>(), 2);
  EXPECT_EQ(plain->num_batches_tracked.item<int64_t>(), 8) << "the trace leaves no mark";
  EXPECT_TRUE(plain->is_training()) << "forward puts the mode back";
}

std::vector<double> losses_with_dropout(int ranks, const std::vector<int>& balance) {
  torch::manual_seed(1);
  LayerList layers;
  layers.add("fc", Linear(4, 16)).add("drop", KeyedDropout(0.5, 11)).add("mid", Linear(16, 16));
  layers.add("again", torch::nn::Sequential(KeyedDropout(0.5, 11), Linear(16, 1)));
  const at::Tensor x = at::ones({8, 4}), y = at::zeros({8, 1});
  std::vector<double> losses;
  run_ranks(ranks, [&](Communicator& pipe) {
    ModulePipeline pipeline(layers, pipe,
                            {.schedule = schedule::one_f_one_b(ranks, 4), .loss = mean_square, .balance = balance});
    for (int step = 0; step < 2; ++step) {
      if (const auto loss = pipeline.step({x}, {y})) losses.push_back(*loss);
    }
  });
  return losses;
}

TEST(KeyedDropout, MasksDoNotDependOnTheCut) {
  const auto losses = losses_with_dropout(1, {4});
  EXPECT_EQ(losses_with_dropout(2, {1, 3}), losses);
  EXPECT_EQ(losses_with_dropout(4, {1, 1, 1, 1}), losses);
  EXPECT_NE(losses[0], losses[1]) << "another step has other masks";
}

TEST(KeyedDropout, MasksAreFunctionsOfTheirKey) {
  KeyedDropout drop(0.5, 3), other(0.5, 4);
  const at::Tensor x = at::ones({64});
  const auto mask = [&](KeyedDropout& module, const MicrobatchContext& context) {
    module->begin_microbatch(context);
    return module(x);
  };
  const at::Tensor first = mask(drop, {.step = 1, .micro = 2, .place = 3});
  EXPECT_FALSE(first.equal(drop(x))) << "a second use";
  EXPECT_TRUE(first.equal(mask(drop, {.step = 1, .micro = 2, .place = 3})));
  EXPECT_FALSE(first.equal(mask(drop, {.step = 2, .micro = 2, .place = 3})));
  EXPECT_FALSE(first.equal(mask(drop, {.step = 1, .micro = 3, .place = 3})));
  EXPECT_FALSE(first.equal(mask(drop, {.step = 1, .micro = 2, .place = 4})));
  EXPECT_FALSE(first.equal(mask(other, {.step = 1, .micro = 2, .place = 3})));
  EXPECT_TRUE(first.eq(0).logical_or(first.eq(2)).all().item<bool>());
  drop->eval();
  EXPECT_TRUE(x.equal(drop(x)));
  EXPECT_THROW(KeyedDropout(1.0), ConfigError);
}

}  // namespace
}  // namespace braid::modules::microbatch_listener_test
