// DataParallel trains what one rank trains on the whole minibatch, whatever is shared out.
#include "braid/module/data_parallel.h"

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"

namespace braid {
namespace {

constexpr int kSteps = 4, kRows = 72;  // in equal parts for all ranks and passes

struct Minibatch {
  at::Tensor inputs, classes;
};

std::vector<Minibatch> minibatches(at::IntArrayRef row_shape) {
  torch::manual_seed(3);
  std::vector<Minibatch> all;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<int64_t> shape{kRows};
    shape.insert(shape.end(), row_shape.begin(), row_shape.end());
    all.push_back({torch::randn(shape, at::kDouble), torch::randint(3, {kRows})});
  }
  return all;
}

LayerList perceptron() {
  torch::manual_seed(1);
  LayerList layers;
  layers.add(torch::nn::Linear(5, 16)).add(torch::nn::Tanh()).add(torch::nn::Linear(16, 3));
  for (int l = 0; l < layers.size(); ++l) layers[l].module->to(at::kDouble);
  return layers;
}

LayerList convolutions() {
  torch::manual_seed(2);
  LayerList layers;
  layers.add("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 4, 3).padding(1)))
      .add("relu", torch::nn::ReLU())
      .add("norm", torch::nn::GroupNorm(2, 4))
      .add("pool", torch::nn::AdaptiveAvgPool2d(2))
      .add("flat", [](const at::Tensor& x) { return x.flatten(1); })
      .add("head", torch::nn::Linear(16, 3));
  for (int l = 0; l < layers.size(); ++l) {
    if (layers[l].module) layers[l].module->to(at::kDouble);
  }
  return layers;
}

at::Tensor forward(const LayerList& layers, at::Tensor x) {
  Tensors tensors{std::move(x)};
  for (int l = 0; l < layers.size(); ++l) tensors = layers[l].forward(tensors);
  return tensors.front();
}

Tensors all_parameters(const LayerList& layers) {
  Tensors all;
  for (int l = 0; l < layers.size(); ++l) {
    if (!layers[l].module) continue;
    for (const at::Tensor& parameter : layers[l].module->parameters()) all.push_back(parameter);
  }
  return all;
}

Tensors copies(const LayerList& layers) {
  Tensors all;
  for (const at::Tensor& parameter : all_parameters(layers)) all.push_back(parameter.detach().clone());
  return all;
}

using MakeModel = LayerList (*)();
struct Model {
  const char* name;
  MakeModel make;
  std::vector<int64_t> row_shape;
};
const Model kModels[] = {{"mlp", perceptron, {5}}, {"cnn", convolutions, {2, 6, 6}}};

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

at::Tensor share(const at::Tensor& rows, int part, int parts) { return rows.chunk(parts)[static_cast<size_t>(part)]; }

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

void expect_near(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LT((got[i] - want[i]).abs().max().item<double>(), 1e-10) << "parameter " << i;
  }
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

TEST(DataParallel, HybridSharesOutInsideAGroup) {
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

// Servers under bsp are the serial training with the optimizer they hold, here AdamW.
TEST(DataParallel, ServersUnderBspTrainWhatOneRankTrains) {
  const Model& model = kModels[0];
  const OptimizerSpec spec{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
  const LayerList alone = model.make();
  torch::optim::AdamW optimizer(
      all_parameters(alone),
      torch::optim::AdamWOptions(0.01).betas({spec.beta1, spec.beta2}).eps(spec.eps).weight_decay(spec.weight_decay));
  const std::vector<Minibatch> batches = minibatches(model.row_shape);
  for (const Minibatch& batch : batches) {
    optimizer.zero_grad();
    torch::cross_entropy_loss(forward(alone, batch.inputs), batch.classes).backward();
    optimizer.step();
  }
  std::vector<LayerList> made = {model.make(), model.make(), model.make()};
  Tensors got;
  run_ranks(3, [&](Communicator& world) {
    const LayerList& layers = made[static_cast<size_t>(world.rank())];
    DataParallel parallel(layers, world,
                          {.sync = {.replication = "parameter-server", .servers = 2}, .optimizer = spec});
    for (const Minibatch& batch : batches) {
      const at::Tensor outputs = parallel.forward(share(batch.inputs, world.rank(), 3));
      parallel.backward(torch::cross_entropy_loss(outputs, share(batch.classes, world.rank(), 3)));
      parallel.step(0.01);
    }
    parallel.with_whole_parameters([&] {
      if (world.rank() == 1) got = copies(layers);
    });
  });
  expect_near(got, copies(alone));
}

// One local step between two averages, by SGD, is the average of the gradients.
TEST(DataParallel, LocalSgdOfOneStepIsSummingGradients) {
  const Model& model = kModels[0];
  const std::vector<Minibatch> batches = minibatches(model.row_shape);
  const auto train = [&](const SyncSpec& sync) {
    std::vector<LayerList> made = {model.make(), model.make()};
    run_ranks(2, [&](Communicator& world) {
      DataParallel parallel(made[static_cast<size_t>(world.rank())], world, {.sync = sync});
      torch::optim::SGD optimizer(parallel.parameters(), 0.1);
      for (const Minibatch& batch : batches) {
        const at::Tensor outputs = parallel.forward(share(batch.inputs, world.rank(), 2));
        parallel.backward(torch::cross_entropy_loss(outputs, share(batch.classes, world.rank(), 2)));
        parallel.step(optimizer);
      }
    });
    return copies(made[1]);
  };
  expect_near(train({.replication = "local-sgd"}), train({}));
}

TEST(DataParallel, RefusesWithEverythingThatIsWrong) {
  try {
    LayerList layers;
    layers.add("drop", torch::nn::Dropout(0.5)).add("half", torch::nn::Linear(2, 2));
    layers[1].module->to(at::kBFloat16);
    run_ranks(2, [&](Communicator& world) { DataParallel(layers, world, {.sync = {.zero = 1, .zero_group = 3}}); });
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("torch::nn::Dropout"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("zero_group"), std::string::npos);
  }
  const LayerList layers = perceptron();
  for (const SyncSpec& wrong :
       {SyncSpec{.replication = "all-reduc"}, SyncSpec{.compression = "zip"}, SyncSpec{.zero = 4},
        SyncSpec{.replication = "diloco", .zero = 1}, SyncSpec{.servers = 0}}) {
    run_ranks(1, [&](Communicator& world) { EXPECT_THROW(DataParallel(layers, world, {.sync = wrong}), ConfigError); });
  }
  LayerList narrow;
  narrow.add("half", torch::nn::Linear(2, 2));
  narrow[0].module->to(at::kBFloat16);
  run_ranks(1, [&](Communicator& world) { EXPECT_THROW(DataParallel(narrow, world), ConfigError); });
}

TEST(DataParallel, StateOfAnOptimizerIsThatOfRank0) {
  std::vector<LayerList> made = {perceptron(), perceptron()};
  run_ranks(2, [&](Communicator& world) {
    const LayerList& layers = made[static_cast<size_t>(world.rank())];
    torch::optim::Adam optimizer(all_parameters(layers), torch::optim::AdamOptions(0.01));
    for (int step = 0; world.rank() == 0 && step < 3; ++step) {
      torch::cross_entropy_loss(forward(layers, torch::ones({2, 5}, at::kDouble)), torch::zeros({2}, at::kLong))
          .backward();
      optimizer.step();
    }
    broadcast_state(optimizer, world);
    ASSERT_EQ(optimizer.state().size(), 4u);
    const at::Tensor first = all_parameters(layers)[0];
    const auto& state = static_cast<torch::optim::AdamParamState&>(*optimizer.state().at(first.unsafeGetTensorImpl()));
    EXPECT_EQ(state.step(), 3);
  });
  run_ranks(4, [&](Communicator& world) { EXPECT_DOUBLE_EQ(mean(world.rank(), world), 1.5); });
}

}  // namespace
}  // namespace braid
