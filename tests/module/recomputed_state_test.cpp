// The memory and the state of recomputed layers: activations are freed, and the second forward sees what the first saw.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <functional>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/recomputed_layer.h"
#include "braid/module/sync_batch_norm.h"

namespace braid::modules::recomputed_state_test {
namespace {

using torch::nn::Linear;

constexpr Activations kBoth[] = {Activations::Kept, Activations::Recomputed};

void expect_same(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << i;
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

TEST(RecomputedLayersState, FreeTheirActivationsUntilBackward) {
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

// A scope without autocast, in a layer.
struct UncastScope {
  UncastScope() { at::autocast::set_autocast_enabled(at::kCPU, false); }
  ~UncastScope() { at::autocast::set_autocast_enabled(at::kCPU, before); }
  const bool before = at::autocast::is_autocast_enabled(at::kCPU);
};

// Mode, autocast and the process-wide generator are as in forward. A hook sees each gradient once.
TEST(RecomputedLayersState, RunAgainInTheStateOfForward) {
  Tensors found[2];
  for (const Activations activations : kBoth) {
    Linear fc(4, 4);
    torch::nn::Sequential net(fc, torch::nn::Dropout(0.5), torch::nn::BatchNorm1d(4));
    torch::manual_seed(1);
    for (auto& parameter : net->parameters()) parameter.data().normal_();
    int hooked = 0;
    const at::Tensor exact = at::randn({4, 4}).requires_grad_(true);
    const auto multiply = [exact](const at::Tensor& x) {
      const UncastScope uncast;
      return x.to(at::kFloat).matmul(exact);
    };
    LayerList layers;
    layers.add("net", net, {.activations = activations});
    layers.add("exact", multiply, {.parameters = {exact}, .activations = activations});
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
      all.push_back(exact.grad().clone());
      for (const at::Tensor& more : {loss.detach(), between, at::rand({2})}) all.push_back(more);
      for (const at::Tensor& buffer : net->buffers()) all.push_back(buffer.clone());
      return all;
    });
    EXPECT_EQ(hooked, 1);
  }
  expect_same(found[0], found[1]);
}

TEST(RecomputedLayersState, NormalizeOverAllRanksAgain) {
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

TEST(RecomputedLayersState, MayRunTwiceUnderAutocast) {
  Linear fc(4, 4);
  LayerList layers;
  layers.add("fc", fc, {.activations = Activations::Recomputed});
  on_one_rank(layers, [&](DataParallel& parallel) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const at::Tensor loss = parallel.forward(rows()).sum() + parallel.forward(rows()).sum();
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    parallel.backward(loss);
    EXPECT_EQ(fc->bias.grad()[0].item<float>(), 12);
    return Tensors();
  });
}

TEST(RecomputedLayersState, AnOutputThatIsNotUsedHasNoGradient) {
  Linear fc(4, 4);
  LayerList layers;
  const auto roots = [](const at::Tensor& x) { return std::pair(x * 2, (x * 0).sqrt()); };
  layers.add("fc", fc).add("roots", roots, {.activations = Activations::Recomputed});
  layers.add("first", [](const at::Tensor& x, const at::Tensor&) { return x; });
  on_one_rank(layers, [&](DataParallel& parallel) {
    parallel.backward(parallel.forward(rows()).sum());
    EXPECT_EQ(fc->bias.grad()[0].item<float>(), 12) << "infinity x 0 was added";
    return Tensors();
  });
}

TEST(RecomputedLayersState, ATensorThatIsGivenTwiceIsOne) {
  Layer layer;
  int calls = 0;
  layer.forward = [&](const Tensors& inputs) {
    EXPECT_TRUE(inputs[0].is_same(inputs[1]));
    ++calls;
    return Tensors{inputs[0] * inputs[1].sin()};
  };
  layer.options.activations = Activations::Recomputed;
  const at::Tensor x = rows().requires_grad_(true);
  run_layer(layer, {x, x}, {.name = "layer"})[0].sum().backward();
  EXPECT_EQ(calls, 2);
  const at::Tensor own = rows().requires_grad_(true);
  (own * own.sin()).sum().backward();
  EXPECT_TRUE(x.grad().equal(own.grad()));
}

}  // namespace
}  // namespace braid::modules::recomputed_state_test
