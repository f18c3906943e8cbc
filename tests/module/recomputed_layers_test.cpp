// Recomputed layers train with the bits of kept ones, free their activations, and refuse what would be wrong.
#include <ATen/autocast_mode.h>
#include <ATen/ops/embedding.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
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
#include "braid/module/sync_batch_norm.h"
#include "braid/schedule/generators.h"

namespace braid::modules::recomputed_layers_test {
namespace {

using torch::nn::Linear;

constexpr int64_t kWidth = 40, kRows = 62, kWords = 9;
constexpr Activations kBoth[] = {Activations::Kept, Activations::Recomputed};

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
      parallel.accumulate(first);
      parallel.backward(last);
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

Tensors piped(Activations activations, const Schedule& schedule, const ActivationsOnDisk* disk = nullptr) {
  const LayerList layers = model(activations, true);
  const std::vector<Data> steps{data(0), data(1)};
  Tensors all(steps.size()), auxiliary(2 * steps.size());
  run_ranks(schedule.num_ranks(), [&](Communicator& pipe) {
    ModulePipeline pipeline(layers, pipe, {.schedule = schedule, .loss = loss_of, .activations = disk});
    torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
    for (size_t i = 0; i < steps.size(); ++i) {
      optimizer.zero_grad();
      const auto loss = pipeline.step({steps[i].words}, {steps[i].targets});
      if (loss) all[i] = at::tensor(*loss, at::kDouble);
      auxiliary[2 * i + pipe.rank()] = at::tensor(pipeline.auxiliary_loss(), at::kDouble);
      pipeline.update(optimizer);
    }
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

TEST(RecomputedLayers, InputsGoToDisk) {
  const Schedule schedule = make_schedule("1f1b", {.ranks = 2, .microbatches = 4});
  int64_t written[2] = {0, 0};
  Tensors values[2];
  for (const Activations activations : kBoth) {
    const ActivationsOnDisk disk({.folders = {"."}, .bytes = 64 << 20});
    values[activations == Activations::Kept] = piped(activations, schedule, &disk);
    written[activations == Activations::Kept] = disk.bytes_written();
  }
  expect_same(values[0], values[1]);
  EXPECT_GT(written[0], 0);
  EXPECT_LT(written[0], written[1]) << "only inputs";
}

// Calls `body` with a DataParallel of one rank.
using OneRank = std::function<Tensors(DataParallel&)>;
Tensors on_one_rank(const LayerList& layers, const OneRank& body) {
  Tensors found;
  run_ranks(1, [&](Communicator& world) {
    DataParallel parallel(layers, world);
    found = body(parallel);
  });
  return found;
}

Tensors gradients_of(const Linear& linear) { return {linear->weight.grad().clone(), linear->bias.grad().clone()}; }

at::Tensor rows() {
  torch::manual_seed(4);
  return at::randn({6, 4});
}

TEST(RecomputedLayers, FreeTheirActivationsUntilBackward) {
  for (const Activations activations : kBoth) {
    std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> inside;
    const auto twice = [&](const at::Tensor& x) {
      const at::Tensor y = x.exp();
      inside.push_back(y.storage().getWeakStorageImpl());
      return y.sin();
    };
    LayerList layers;
    layers.add("fc", Linear(4, 4)).add("twice", twice, {.activations = activations});
    on_one_rank(layers, [&](DataParallel& parallel) {
      {
        const c10::AutoGradMode no_grad(false);
        parallel.forward(rows());
      }
      EXPECT_EQ(inside.size(), 1U);
      const at::Tensor loss = parallel.forward(rows()).sum();
      EXPECT_EQ(inside.back().expired(), activations == Activations::Recomputed);
      parallel.backward(loss);
      EXPECT_EQ(inside.size(), activations == Activations::Recomputed ? 3U : 2U);
      return Tensors();
    });
  }
}

// Mode, autocast and the process-wide generator are as in forward. A hook sees each gradient once.
TEST(RecomputedLayers, RunAgainInTheStateOfForward) {
  Tensors found[2];
  for (const Activations activations : kBoth) {
    Linear fc(4, 4);
    torch::nn::Sequential net(fc, torch::nn::Dropout(0.5), torch::nn::BatchNorm1d(4));
    torch::manual_seed(1);
    for (auto& parameter : net->parameters()) parameter.data().normal_();
    int hooked = 0;
    LayerList layers;
    layers.add("net", net, {.activations = activations});
    found[activations == Activations::Kept] = on_one_rank(layers, [&](DataParallel& parallel) {
      fc->weight.register_hook([&](const at::Tensor& gradient) {
        ++hooked;
        return gradient * 2;
      });
      torch::manual_seed(5);
      at::autocast::set_autocast_enabled(at::kCPU, true);
      const at::Tensor loss = parallel.forward(rows()).square().sum();
      at::autocast::clear_cache();
      at::autocast::set_autocast_enabled(at::kCPU, false);
      net->eval();
      const at::Tensor between = at::rand({2});
      parallel.backward(loss);
      EXPECT_FALSE(net->is_training());
      Tensors all = gradients_of(fc);
      for (const at::Tensor& more : {loss.detach(), between, at::rand({2})}) all.push_back(more);
      for (const at::Tensor& buffer : net->buffers()) all.push_back(buffer.clone());
      return all;
    });
    EXPECT_EQ(hooked, 1);
  }
  expect_same(found[0], found[1]);
}

TEST(RecomputedLayers, NormalizeOverAllRanksAgain) {
  Tensors found[2];
  for (const Activations activations : kBoth) {
    std::vector<Tensors> of_ranks(2);
    torch::manual_seed(6);
    const at::Tensor x = at::randn({2, 5, 4});
    std::vector<Linear> linears{Linear(4, 4), Linear(4, 4)};
    run_ranks(2, [&](Communicator& world) {
      const auto group = world.split(0, world.rank(), "norms");
      const SyncBatchNorm norm(torch::nn::BatchNormOptions(4), *group);
      LayerList layers;
      const LayerOptions options{.activations = activations};
      layers.add("net", torch::nn::Sequential(linears[world.rank()], norm, linears[world.rank()]), options);
      DataParallel parallel(layers, world);
      parallel.backward(parallel.forward(x[world.rank()]).square().sum());
      parallel.step([&] { of_ranks[world.rank()] = gradients_of(linears[world.rank()]); });
      of_ranks[world.rank()].push_back(norm->state().running_mean.clone());
      of_ranks[world.rank()].push_back(norm->state().num_batches_tracked.clone());
    });
    of_ranks[0].insert(of_ranks[0].end(), of_ranks[1].begin(), of_ranks[1].end());
    found[activations == Activations::Kept] = of_ranks[0];
  }
  expect_same(found[0], found[1]);
}

}  // namespace
}  // namespace braid::modules::recomputed_layers_test
