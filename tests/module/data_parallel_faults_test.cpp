// Refusals of DataParallel, and messages of ranks beside gradients.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "tests/module/small_models.h"

namespace braid::modules::data_parallel_faults_test {
namespace {

using namespace small_models;

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
       {SyncSpec{.bucket_mb = -1}, SyncSpec{.compression_rank = 0}, SyncSpec{.zero = 4},
        SyncSpec{.replication = ReplicationKind::DiLoCo, .zero = 1}, SyncSpec{.servers = 0},
        SyncSpec{.replication = ReplicationKind::ParameterServer, .servers_on = ServersOn::Own}}) {
    run_ranks(1, [&](Communicator& world) { EXPECT_THROW(DataParallel(layers, world, {.sync = wrong}), ConfigError); });
  }
  LayerList narrow;
  narrow.add("half", torch::nn::Linear(2, 2));
  narrow[0].module->to(at::kBFloat16);
  run_ranks(1, [&](Communicator& world) { EXPECT_THROW(DataParallel(narrow, world), ConfigError); });
}

TEST(DataParallel, RefusesWhatOnlyAPipelineKnowsAndNamesThatAreNotOne) {
  LayerList skips, twice;
  skips.add("in", torch::nn::Linear(2, 2), {.stash = {"a"}}).add("out", torch::nn::Linear(2, 2), {.pop = {"a"}});
  twice.add("one", torch::nn::Linear(2, 2)).add("one", torch::nn::Linear(2, 2));
  for (const auto& [layers, words] : {std::pair(&skips, "layers.out: must stash and pop nothing"),
                                      {&twice, "layers.one: is the name of layers 0 and 1"}}) {
    try {
      run_ranks(1, [&, layers = layers](Communicator& world) { DataParallel(*layers, world); });
      ADD_FAILURE() << words;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
}

// The gradients would be no part of a step, and the ranks would train different models.
TEST(DataParallel, RefusesTheLosssOwnBackward) {
  for (const int zero : {0, 2}) {
    run_ranks(1, [&](Communicator& world) {
      DataParallel model(perceptron(), world, {.sync = {.zero = zero}});
      torch::optim::SGD optimizer(model.parameters(), 0.1);
      const auto loss = [&] { return model.forward(torch::ones({2, 5}, at::kDouble)).sum(); };
      for (int step = 0; step < 2; ++step) {
        EXPECT_THROW(loss().backward(), ConfigError) << "zero " << zero << ", step " << step;
        model.backward(loss());
        model.step(optimizer);
      }
    });
  }
}

std::string said_by(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(DataParallel, AParameterWithoutMemoryIsRefusedToItsReaders) {
  std::vector<LayerList> made = {perceptron(), perceptron()};
  run_ranks(2, [&](Communicator& world) {
    const LayerList& layers = made[static_cast<size_t>(world.rank())];
    DataParallel parallel(layers, world, {.sync = {.zero = 3}});
    torch::optim::SGD sgd(parallel.parameters(), 0.1);
    const at::Tensor weight = all_parameters(layers)[0], view = weight.t();
    const std::vector<std::function<void()>> uses = {
        [&] { weight.sum().item<double>(); }, [&] { view.sum().item<double>(); },
        [&] { weight.detach().zero_(); },     [&] { weight.detach().clone(); },
        [&] { (void)weight.data_ptr(); },     [&] { forward(layers, torch::ones({2, 5}, at::kDouble)); }};
    const auto look = [&] {
      for (size_t i = 0; i < uses.size(); ++i) {
        const std::string said = said_by(uses[i]);
        EXPECT_NE(said.find("0.0, 0.1 are sharded"), std::string::npos) << i << ": " << said;
      }
    };
    look();
    parallel.with_whole_parameters([&] { EXPECT_GT(weight.abs().sum().item<double>(), 0); });
    const auto loss = parallel.forward(torch::ones({2, 5}, at::kDouble)).sum();
    look();
    parallel.backward(loss);
    look();
    parallel.step(sgd);
    look();
  });
}

TEST(DataParallel, WhatThrowsWhileParametersAreWholeGivesThemBack) {
  std::vector<LayerList> made = {perceptron(), perceptron()};
  run_ranks(2, [&](Communicator& world) {
    const LayerList& layers = made[static_cast<size_t>(world.rank())];
    DataParallel parallel(layers, world, {.sync = {.zero = 3}});
    const at::Tensor weight = all_parameters(layers)[0];
    const auto has_memory = [&] { return said_by([&] { weight.sum().item<double>(); }) == "nothing was refused"; };
    const auto thrower = [&] {
      EXPECT_TRUE(has_memory());
      throw std::runtime_error("mine");
    };
    EXPECT_EQ(said_by([&] { parallel.with_whole_parameters(thrower); }), "mine");
    EXPECT_FALSE(has_memory());
    EXPECT_NE(said_by([&] {
                parallel.forward(torch::ones({2, 4}, at::kDouble));
              }),
              "nothing was refused");  // of 5 columns
    EXPECT_FALSE(has_memory());
  });
}

// The norm of an input's gradient as a part of the loss.
TEST(DataParallel, DoubleBackwardWorksWhereParametersAreWholeAndElseIsRefused) {
  LayerList alone = perceptron();
  const at::Tensor rows = torch::ones({2, 5}, at::kDouble);
  const auto penalty = [&](const auto& run) {
    const at::Tensor x = rows.clone().requires_grad_(true);
    const at::Tensor output = run(x).square().sum();
    return torch::autograd::grad({output}, {x}, {}, true, true)[0].square().sum();
  };
  penalty([&](const at::Tensor& x) { return forward(alone, x); }).backward();
  for (const int zero : {0, 1, 2, 3}) {
    std::vector<LayerList> made = {perceptron(), perceptron()};
    const std::string said = said_by([&] {
      run_ranks(2, [&](Communicator& world) {
        const LayerList& layers = made[static_cast<size_t>(world.rank())];
        DataParallel parallel(layers, world, {.sync = {.zero = zero}});
        parallel.backward(penalty([&](const at::Tensor& x) { return parallel.forward(x); }));
        if (zero > 0) return;
        parallel.step([&] { EXPECT_TRUE(all_parameters(layers)[0].grad().allclose(all_parameters(alone)[0].grad())); });
      });
    });
    if (zero < 3) {
      EXPECT_EQ(said, "nothing was refused");
    } else {
      EXPECT_NE(said.find("create_graph"), std::string::npos) << said;
    }
  }
}

// As in torch: a layer that works in place writes what it is given, the caller's tensor or that of the layer before.
TEST(DataParallel, LayersMayWorkInPlace) {
  const auto relu = [](bool in_place) { return torch::nn::ReLU(torch::nn::ReLUOptions().inplace(in_place)); };
  const auto trained = [&](int zero, bool in_place) {
    std::vector<LayerList> made(2);
    Tensors result;
    for (LayerList& layers : made) {
      torch::manual_seed(1);
      layers.add(relu(in_place)).add(torch::nn::Linear(3, 3)).add(relu(in_place)).add(torch::nn::Linear(3, 1));
    }
    run_ranks(2, [&](Communicator& world) {
      const LayerList& layers = made[static_cast<size_t>(world.rank())];
      DataParallel parallel(layers, world, {.sync = {.zero = zero}});
      torch::optim::SGD sgd(parallel.parameters(), 0.1);
      const at::Tensor x = at::arange(-3.0, 3.0).view({2, 3});
      parallel.backward(parallel.forward(x).square().sum());
      parallel.step(sgd);
      EXPECT_EQ(x.ge(0).all().item<bool>(), in_place) << zero;
      parallel.with_whole_parameters([&] {
        if (world.rank() == 0) result = copies(layers);
      });
    });
    return result;
  };
  for (const int zero : {0, 3}) {
    const Tensors expected = trained(zero, false), found = trained(zero, true);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(found[i].equal(expected[i])) << zero << ": " << i;
  }
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

// Some gradients of the step are added and sent, and others are not.
TEST(DataParallel, AFailedBackwardIsTheLast) {
  for (const int zero : {0, 2, 3}) {
    const LayerList layers = perceptron();
    run_ranks(1, [&](Communicator& world) {
      DataParallel model(layers, world, {.sync = {.zero = zero}});
      torch::optim::SGD optimizer(model.parameters(), 0.1);
      const at::Tensor hidden = model.forward(at::ones({2, 5}, at::kDouble));
      hidden.register_hook([](const at::Tensor& gradient) -> at::Tensor { throw std::runtime_error("not today"); });
      EXPECT_THROW(model.backward(hidden.sum()), std::runtime_error);
      EXPECT_THROW(model.backward(model.forward(at::ones({2, 5}, at::kDouble)).sum()), RunError);
      EXPECT_THROW(model.step(optimizer), RunError);
    });
  }
}

// The gradients of all ranks would be added to one tensor.
TEST(DataParallel, ThreadsThatShareLayersAreRefused) {
  const LayerList layers = LayerList().add("relu", torch::nn::ReLU()).add("fc", torch::nn::Linear(2, 3));
  const std::string said = said_by([&] { run_ranks(2, [&](Communicator& world) { DataParallel(layers, world); }); });
  EXPECT_NE(said.find("layers.fc: is run by several ranks"), std::string::npos) << said;
  EXPECT_EQ(said.find("relu"), std::string::npos) << said;
}

TEST(DataParallel, ThreadsThatShareAPartOfAnotherLayerAreRefused) {
  const torch::nn::Linear both(2, 2);
  const auto said = said_by([&] {
    run_ranks(2, [&](Communicator& world) {
      torch::nn::Sequential second(torch::nn::Linear(2, 2), both);
      DataParallel(world.rank() == 0 ? LayerList().add("a", both).add("b", torch::nn::Linear(2, 2))
                                     : LayerList().add("a", torch::nn::Linear(2, 2)).add("b", second),
                   world);
    });
  });
  EXPECT_NE(said.find("layers.b: is run by several ranks"), std::string::npos) << said;
}

}  // namespace
}  // namespace braid::modules::data_parallel_faults_test
