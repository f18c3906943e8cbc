// Recomputed layers train with the bits of kept ones, in DataParallel and in pipelines.
#include <ATen/ops/embedding.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/auxiliary_loss.h"
#include "braid/module/data_parallel.h"
#include "braid/module/deferred_batch_norm.h"
#include "braid/module/keyed_dropout.h"
#include "braid/module/layer_facts.h"
#include "braid/module/module_pipeline.h"
#include "braid/module/recomputed_layer.h"
#include "braid/schedule/generators.h"

namespace braid::modules::recomputed_layers_test {
namespace {

using torch::nn::Linear;

constexpr int64_t kWidth = 40, kRows = 62, kWords = 9;

// Has two draws, two auxiliary losses, running statistics, a frozen layer, and a write in place inside.
struct BlockImpl : torch::nn::Module {
  BlockImpl(const Linear& linear, const KeyedDropout& dropout) : fc(linear), drop(dropout) {
    register_module("fc", fc);
    register_module("drop", drop);
    for (auto& parameter : frozen->parameters()) parameter.requires_grad_(false);
  }
  at::Tensor forward(at::Tensor x) {
    const at::Tensor y = norm(fc(x)).relu_();
    contribute_auxiliary_loss(y.square().mean(), 0.3);
    contribute_auxiliary_loss(y.sin().mean());
    return x + drop(frozen(drop(y)));
  }
  Linear fc, frozen = register_module("frozen", Linear(kWidth, kWidth));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(kWidth));
  KeyedDropout drop;
};
TORCH_MODULE(Block);

// Begins with words, which have no gradient. Outputs of `fork` are one that needs no gradient, its input, and a tensor
// twice, which `join` writes.
LayerList model(Activations activations, bool skips) {
  torch::manual_seed(7);
  const at::Tensor table = at::randn({kWords, kWidth}, at::kDouble).requires_grad_(true);
  const Linear fc(kWidth, kWidth);
  const KeyedDropout drop(0.3);
  const auto look_up = [table](const at::Tensor& words) { return at::embedding(table, words); };
  const auto fork = [](const at::Tensor& x) {
    const at::Tensor y = x * 3;
    return Tensors{y * 2, x.gt(0).to(x.scalar_type()), x, y, y};
  };
  const auto join = [](const Tensors& x) {
    x[3].relu_();
    return x[0] * x[1] + x[2].sin() * x[3] + x[4];
  };
  const LayerOptions plain{.activations = activations};
  LayerOptions embeds = plain, stashes = plain, pops;
  embeds.parameters = {table};
  if (skips) stashes.stash = pops.pop = {"mask", "x", "y", "same"};
  LayerList layers;
  layers.add("embed", look_up, embeds).add("first", Block(fc, drop), plain);
  layers.add("fork", fork, stashes);
  if (skips)
    layers.add(
        "between", [](const at::Tensor& x) { return x.cos(); }, plain);
  layers.add("join", join, pops);
  layers.add("deferred", DeferredBatchNorm(kWidth), plain);
  layers.add("second", skips ? Block(Linear(kWidth, kWidth), KeyedDropout(0.2)) : Block(fc, drop), plain);
  layers.add("head", Linear(kWidth, 3), plain);
  for (int l = 0; l < layers.size(); ++l) {
    if (layers[l].module) layers[l].module->to(at::kDouble);
  }
  return layers;
}

Tensors values_of(const LayerList& layers) {
  Tensors all;
  for (int l = 0; l < layers.size(); ++l) {
    for (const at::Tensor& parameter : parameters(layers[l])) all.push_back(parameter.detach().clone());
  }
  for (const at::Tensor& buffer : buffers(layers)) all.push_back(buffer.clone());
  return all;
}

struct Data {
  at::Tensor words, targets;
};
Data data(int step) {
  torch::manual_seed(20 + step);
  return {at::randint(kWords, {kRows}), at::randn({kRows, 3}, at::kDouble)};
}
at::Tensor loss_of(const at::Tensor& y, const at::Tensor& target) { return (y - target).square().mean(); }

void expect_same(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << i;
}

// Each step has two forwards before the two backwards. Returns the losses of rank 0 and the values.
Tensors replicated(Activations activations, int zero) {
  const std::vector<LayerList> lists{model(activations, false), model(activations, false)};
  std::vector<Data> steps{data(0), data(1)};
  Tensors all;
  run_ranks(2, [&](Communicator& world) {
    DataParallel parallel(lists[world.rank()], world, {.sync = {.zero = zero}});
    torch::optim::SGD optimizer(parallel.parameters(), 0.1);
    for (const Data& step : steps) {
      const auto loss = [&](int part) {
        const auto own = [&](const at::Tensor& whole) { return whole.chunk(4)[2 * world.rank() + part]; };
        const AuxiliaryLossScope auxiliary;
        const at::Tensor main = loss_of(parallel.forward(own(step.words)), own(step.targets));
        if (world.rank() == 0) all.push_back(main.detach()), all.push_back(auxiliary.total().detach());
        return main + auxiliary.total();
      };
      const at::Tensor first = loss(0), last = loss(1);
      parallel.accumulate(last);
      parallel.backward(first);
      parallel.step(optimizer);
    }
    parallel.with_whole_parameters([&] {
      if (world.rank() > 0) return;
      for (const at::Tensor& value : values_of(lists[0])) all.push_back(value);
    });
  });
  return all;
}

TEST(RecomputedLayers, UnderDataParallelHaveTheBitsOfKeptOnes) {
  for (const int zero : {0, 1, 2, 3}) {
    SCOPED_TRACE(zero);
    expect_same(replicated(Activations::Recomputed, zero), replicated(Activations::Kept, zero));
  }
}

// With `written`, activations are on disk; counts their bytes.
Tensors piped(Activations activations, const Schedule& schedule, std::vector<int64_t>* written = nullptr) {
  const LayerList layers = model(activations, true);
  const std::vector<Data> steps{data(0), data(1)};
  Tensors all(steps.size()), auxiliary(2 * steps.size());
  run_ranks(schedule.num_ranks(), [&](Communicator& pipe) {
    const ActivationsOnDisk disk({.folders = {"."}, .bytes = written ? 64 << 20 : 0});
    ModulePipeline pipeline(layers, pipe,
                            {.schedule = schedule, .loss = loss_of, .activations = written ? &disk : nullptr});
    torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
    for (size_t i = 0; i < steps.size(); ++i) {
      optimizer.zero_grad();
      const auto loss = pipeline.step({steps[i].words}, {steps[i].targets});
      if (loss) all[i] = at::tensor(*loss, at::kDouble);
      auxiliary[2 * i + pipe.rank()] = at::tensor(pipeline.auxiliary_loss(), at::kDouble);
      pipeline.update(optimizer);
    }
    if (written) written->at(pipe.rank()) = disk.bytes_written();
  });
  for (const Tensors& more : {auxiliary, values_of(layers)}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(RecomputedLayers, InAPipelineHaveTheBitsOfKeptOnes) {
  int played = 0;
  for (const auto& traits : schedule_traits()) {
    SCOPED_TRACE(traits.name);
    Schedule schedule;
    try {
      schedule = make_schedule(traits.name, {.ranks = 2, .microbatches = 4});
    } catch (const ConfigError&) {
      continue;
    }
    if (schedule.mirrored() || traits.asynchronous() || schedule.num_stages > 8) continue;
    expect_same(piped(Activations::Recomputed, schedule), piped(Activations::Kept, schedule));
    ++played;
  }
  EXPECT_GE(played, 8);
}

Tensors replicated_pipelines(Activations activations, int zero) {
  const std::vector<LayerList> lists{model(activations, true), model(activations, true)};
  const std::vector<Data> steps{data(0), data(1)};
  const Schedule schedule = make_schedule("1f1b", {.ranks = 2, .microbatches = 3});
  run_ranks(4, [&](Communicator& world) {
    const int replica = world.rank() / 2;
    const auto pipe = world.split(replica, 0, "pipe"), peers = world.split(2 + world.rank() % 2, 0, "data");
    ModulePipeline pipeline(lists[replica], *pipe,
                            {.schedule = schedule, .loss = loss_of, .data = peers.get(), .sync = {.zero = zero}});
    torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
    for (const Data& step : steps) {
      optimizer.zero_grad();
      pipeline.step({step.words.chunk(2)[replica]}, {step.targets.chunk(2)[replica]});
      pipeline.update(optimizer);
    }
  });
  return values_of(lists[1]);
}

TEST(RecomputedLayers, OnDataRanksOfPipelinesHaveTheBitsOfKeptOnes) {
  for (const int zero : {0, 1}) {
    SCOPED_TRACE(zero);
    expect_same(replicated_pipelines(Activations::Recomputed, zero), replicated_pipelines(Activations::Kept, zero));
  }
}

TEST(RecomputedLayers, InputsGoToDisk) {
  const Schedule schedule = make_schedule("1f1b", {.ranks = 2, .microbatches = 4});
  std::vector<int64_t> kept(2), recomputed(2);
  expect_same(piped(Activations::Recomputed, schedule, &recomputed), piped(Activations::Kept, schedule, &kept));
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_GT(recomputed[rank], 0);
    EXPECT_LT(recomputed[rank], kept[rank]) << "only inputs";
  }
}

// An input without a gradient has none in the first forward either, where other operations would run.
TEST(RecomputedLayers, AMaskNeedsNoGradient) {
  const at::Tensor weight = at::ones({2, 2}).requires_grad_(true);
  LayerList layers;
  int num_runs = 0;
  layers.add("split", [](const at::Tensor& x) { return std::pair(x, at::ones({2})); });
  const auto mask = [weight, &num_runs](const at::Tensor& x, const at::Tensor& of) {
    ++num_runs;
    EXPECT_TRUE(x.requires_grad());
    EXPECT_FALSE(of.requires_grad());
    return x.matmul(weight) * of;
  };
  layers.add("mask", mask, {.parameters = {weight}, .activations = Activations::Recomputed});
  run_ranks(1, [&](Communicator& world) {
    DataParallel model(layers, world);
    model.backward(model.forward(at::ones({3, 2}).requires_grad_(true)).sum());
  });
  EXPECT_EQ(num_runs, 2);
}

}  // namespace
}  // namespace braid::modules::recomputed_layers_test
