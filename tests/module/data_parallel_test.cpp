// DataParallel trains what one rank trains on the whole minibatch, whatever is sharded.
#include "braid/module/data_parallel.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/module/small_models.h"

namespace braid::modules::data_parallel_test {
namespace {

using namespace small_models;

// Adam with a clipped norm, on one rank.
Tensors serial(const Model& model, double clip) {
  const LayerList layers = model.make();
  torch::optim::Adam optimizer(all_parameters(layers), torch::optim::AdamOptions(0.01));
  for (const Minibatch& batch : minibatches(model.row_shape)) {
    optimizer.zero_grad();
    torch::cross_entropy_loss(forward(layers, batch.inputs), batch.classes).backward();
    torch::nn::utils::clip_grad_norm_(all_parameters(layers), clip);
    optimizer.step();
  }
  return copies(layers);
}

struct Way {
  int ranks = 1;
  SyncSpec sync;
  int accumulated = 1;  // backward passes per step
};

Tensors parallel(const Model& model, const Way& way, double clip) {
  Tensors result;
  const std::vector<Minibatch> batches = minibatches(model.row_shape);
  std::vector<LayerList> made;  // seeds are of the process
  for (int rank = 0; rank < way.ranks; ++rank) made.push_back(model.make());
  run_ranks(way.ranks, [&](Communicator& world) {
    const LayerList& layers = made[static_cast<size_t>(world.rank())];
    DataParallel parallel(layers, world, {.sync = way.sync});
    torch::optim::Adam optimizer(parallel.parameters(), torch::optim::AdamOptions(0.01));
    for (const Minibatch& batch : batches) {
      const at::Tensor inputs = share(batch.inputs, world.rank(), way.ranks);
      const at::Tensor classes = share(batch.classes, world.rank(), way.ranks);
      for (int part = 0; part < way.accumulated; ++part) {
        const at::Tensor outputs = parallel.forward(share(inputs, part, way.accumulated));
        const at::Tensor loss =
            torch::cross_entropy_loss(outputs, share(classes, part, way.accumulated)) / way.accumulated;
        part + 1 < way.accumulated ? parallel.accumulate(loss) : parallel.backward(loss);
      }
      parallel.clip_grad_norm(clip);
      parallel.step(optimizer);
    }
    parallel.with_whole_parameters([&] {
      if (world.rank() == 0) result = copies(layers);
    });
  });
  return result;
}

TEST(DataParallel, TrainsWhatOneRankTrains) {
  for (const Model& model : kModels) {
    const Tensors want = serial(model, 0.5);
    for (const int zero : {0, 1, 2, 3}) {
      for (const int ranks : {1, 2, 3, 4, 8}) {
        for (const int accumulated : {1, 3}) {
          SCOPED_TRACE(cat(model.name, ", zero ", zero, ", ", ranks, " ranks, ", accumulated, " passes per step"));
          expect_near(parallel(model, {ranks, {.zero = zero}, accumulated}, 0.5), want);
        }
      }
    }
  }
}

TEST(DataParallel, HybridShardsInsideAGroup) {
  const Tensors want = serial(kModels[0], 0.5);
  for (const int zero : {1, 2, 3}) {
    expect_near(parallel(kModels[0], {4, {.zero = zero, .zero_group = 2}}, 0.5), want);
  }
}

// The layer in the middle is not used in every step, one parameter is frozen, and one is used twice.
struct Branches : torch::nn::Module {
  Branches() {
    in = register_module("in", torch::nn::Linear(4, 4));
    side = register_module("side", torch::nn::Linear(4, 4));
    frozen = register_module("frozen", torch::nn::Linear(4, 4));
    for (auto& parameter : frozen->parameters()) parameter.requires_grad_(false);
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = frozen->forward(in->forward(in->forward(x)));
    return x.sum().item<double>() > 0 ? side->forward(y) : y;
  }
  torch::nn::Linear in{nullptr}, side{nullptr}, frozen{nullptr};
};

TEST(DataParallel, UnusedFrozenAndSharedParameters) {
  torch::manual_seed(5);
  const at::Tensor rows = torch::randn({4, 8, 4}, at::kDouble);
  std::vector<std::shared_ptr<Branches>> made;
  for (int i = 0; i < 7; ++i) torch::manual_seed(6), made.push_back(std::make_shared<Branches>());
  const auto& alone = made[6];
  Tensors trained;
  for (const at::Tensor& parameter : alone->parameters()) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  torch::optim::SGD serial(trained, 0.1);
  for (int step = 0; step < 4; ++step) {
    serial.zero_grad();
    at::Tensor loss = torch::zeros({}, at::kDouble);
    for (int rank = 0; rank < 2; ++rank) loss = loss + alone->forward(rows[step].chunk(2)[rank]).square().mean() / 2;
    loss.backward();
    serial.step();
  }
  for (const int zero : {0, 1, 2}) {
    run_ranks(2, [&](Communicator& world) {
      const auto& module = made[static_cast<size_t>(2 * zero + world.rank())];
      DataParallel parallel(LayerList().add("branches", module), world, {.sync = {.zero = zero}});
      torch::optim::SGD sgd(parallel.parameters(), 0.1);
      for (int step = 0; step < 4; ++step) {
        parallel.backward(module->forward(rows[step].chunk(2)[world.rank()]).square().mean());
        parallel.step(sgd);
      }
    });
    expect_near(made[static_cast<size_t>(2 * zero)]->parameters(), alone->parameters());
    expect_near(made[static_cast<size_t>(2 * zero + 1)]->parameters(), alone->parameters());
  }
}

// Trains one model per rank by SGD, each on its share of the rows. Returns the parameters of rank 1.
using LossOf = at::Tensor (*)(DataParallel& parallel, const Minibatch& rows);
Tensors trained_by(const std::vector<LayerList>& models, int zero, at::IntArrayRef row_shape, LossOf loss) {
  const std::vector<Minibatch> batches = minibatches(row_shape);
  const auto ranks = static_cast<int>(models.size());
  Tensors result;
  run_ranks(ranks, [&](Communicator& world) {
    DataParallel parallel(models[static_cast<size_t>(world.rank())], world, {.sync = {.zero = zero}});
    torch::optim::SGD sgd(parallel.parameters(), 0.1);
    for (const Minibatch& batch : batches) {
      const auto own = [&](const at::Tensor& rows) { return share(rows, world.rank(), ranks); };
      parallel.backward(loss(parallel, {own(batch.inputs), own(batch.classes)}));
      parallel.step(sgd);
    }
    parallel.with_whole_parameters([&] {
      if (world.rank() == 1) result = copies(models[1]);
    });
  });
  return result;
}

// One rank's loss does not depend on the parameters of a layer, so replicas compute gradients in other orders.
TEST(DataParallel, LayersThatOneRankSkips) {
  const auto make = [](bool skips) {
    torch::manual_seed(8);
    const auto linear = [] {
      torch::nn::Linear made(6, 6);
      made->to(at::kDouble);
      return made;
    };
    const at::Tensor weight = linear()->weight;
    const auto call = [weight, skips](const at::Tensor& x) { return skips ? x * 2 : x.matmul(weight); };
    LayerList layers;
    layers.add("0", linear()).add("1", linear()).add("2", call, {.parameters = {weight}});
    return layers.add("3", linear()).add("4", linear()).add("5", linear());
  };
  const auto loss = [](DataParallel& parallel, const Minibatch& rows) {
    return torch::cross_entropy_loss(parallel.forward(rows.inputs), rows.classes);
  };
  const auto trained = [&](int zero) { return trained_by({make(false), make(true), make(true)}, zero, {6}, loss); };
  for (const int zero : {1, 2, 3}) expect_near(trained(zero), trained(0));
}

// Both forwards add to the gradients of each layer in one backward.
TEST(DataParallel, TwoForwardsForOneBackward) {
  const auto loss = [](DataParallel& parallel, const Minibatch& rows) {
    const at::Tensor first = parallel.forward(rows.inputs.sin()), second = parallel.forward(rows.inputs);
    return (first * second).square().mean();
  };
  const auto trained = [&](int zero) { return trained_by({perceptron(), perceptron()}, zero, {5}, loss); };
  for (const int zero : {1, 2, 3}) expect_near(trained(zero), trained(0));
}

// Per step and rank, in units of P (n - 1) / n: ZeRO sections 7.1 and 7.2.
TEST(DataParallel, TrafficIsWhatTheFormulasSay) {
  const int factors[] = {2, 2, 2, 3};
  for (const int zero : {0, 1, 2, 3}) {
    std::vector<LayerList> made = {perceptron(), perceptron()};
    run_ranks(2, [&](Communicator& world) {
      DataParallel parallel(made[static_cast<size_t>(world.rank())], world, {.sync = {.zero = zero}});
      torch::optim::SGD sgd(parallel.parameters(), 0.1);
      const Minibatch batch{torch::ones({2, 5}, at::kDouble), torch::zeros({2}, at::kLong)};
      parallel.backward(torch::cross_entropy_loss(parallel.forward(batch.inputs), batch.classes));
      parallel.step(sgd);
      // Two layers with parameters; slices are padded to 1,024 elements, units to 2,048.
      const int64_t elements = 4 * 1024;
      EXPECT_EQ(parallel.bytes_sent(), factors[zero] * elements * 8 / 2) << zero;
    });
  }
}

}  // namespace
}  // namespace braid::modules::data_parallel_test
