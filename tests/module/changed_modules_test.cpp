// Changes of users' modules after a DataParallel was made: values loaded, other types, parameters frozen, released or
// replaced. It is followed, or refused by name.
#include <torch/optim/adam.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "tests/module/changed_models.h"

namespace braid::modules::changed_modules_test {
namespace {

using namespace changed_models;

DataParallel::Options options_of(int zero) { return {.sync = {.zero = zero}}; }

at::Tensor half_of(const at::Tensor& rows, const Communicator& world) { return rows.chunk(2)[world.rank()]; }

TEST(ChangedModules, ValuesLoadedLaterAreTakenIntoTheStore) {
  const std::string file = checkpoint();
  for (const LoadAt when : {LoadAt::BetweenSteps, LoadAt::BeforeUpdate}) {
    const Tensors expected = serial_with_load(when);
    for (const int zero : {0, 1, 2, 3}) {
      SCOPED_TRACE(cat("zero ", zero, when == LoadAt::BetweenSteps ? ", between steps" : ", before the update"));
      std::vector<Twice> nets{Twice(1), Twice(2)};
      run_ranks(2, [&](Communicator& world) {
        Twice& net = nets[world.rank()];
        DataParallel parallel(net->layers(), world, options_of(zero));
        torch::optim::SGD optimizer(parallel.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
        for (int step = 0; step < kStepsOfChange; ++step) {
          if (step == 1 && when == LoadAt::BetweenSteps) load_into(net, file, parallel);
          const Pairs& all = pairs_of(step);
          parallel.backward(mean_square_of(parallel.forward(half_of(all.x, world)), half_of(all.y, world)));
          if (step == 1 && when == LoadAt::BeforeUpdate) load_into(net, file, parallel);
          parallel.step(optimizer);
        }
        parallel.with_whole_parameters([&] { expect_close_to(copies_of(net), expected); });
      });
    }
  }
}

TEST(ChangedModules, ValuesLoadedOnSomeRanksOnlyEndInAnError) {
  for (const int zero : {0, 1, 2, 3}) {
    std::vector<Twice> nets{Twice(1), Twice(2)};
    const auto train = [&](Communicator& world) {
      Twice& net = nets[world.rank()];
      DataParallel parallel(net->layers(), world, options_of(zero));
      torch::optim::SGD optimizer(parallel.parameters(), 0.1);
      if (world.rank() == 1) net->in->weight.set_data(torch::zeros({6, 4}, at::kDouble));
      const Pairs& all = pairs_of(0);
      parallel.backward(mean_square_of(parallel.forward(half_of(all.x, world)), half_of(all.y, world)));
      parallel.step(optimizer);
    };
    EXPECT_THROW(run_ranks(2, train), CommError) << zero;
  }
}

// Returns the error of training when `change` is made after the first step.
std::string said_after(const SyncSpec& sync, const std::function<void(Twice&)>& change) {
  std::vector<Twice> nets{Twice(1), Twice(1)};
  for (Twice& net : nets) net->head->bias.requires_grad_(false);
  try {
    run_ranks(2, [&](Communicator& world) {
      Twice& net = nets[world.rank()];
      DataParallel parallel(net->layers(), world, {.sync = sync});
      std::optional<torch::optim::Adam> optimizer;
      const bool served = sync.replication == ReplicationKind::ParameterServer;
      if (!served) optimizer.emplace(parallel.parameters(), torch::optim::AdamOptions(0.1));
      for (int step = 0; step < 2; ++step) {
        if (step == 1) change(net);
        const Pairs& all = pairs_of(step);
        const at::ScalarType type = net->in->weight.scalar_type();
        const at::Tensor x = half_of(all.x, world).to(type), y = half_of(all.y, world).to(type);
        parallel.backward(mean_square_of(parallel.forward(x), y));
        served ? parallel.step(0.1) : parallel.step(*optimizer);
      }
    });
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(ChangedModules, WhatCannotBeFollowedIsRefusedByName) {
  const auto says = [](const std::string& said, const std::string& words) {
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  const auto freeze = [](Twice& net) { net->twice->weight.requires_grad_(false); };
  const auto release = [](Twice& net) { net->head->bias.requires_grad_(true); };
  const auto convert = [](Twice& net) { net->to(at::kFloat); };
  const auto replace = [](Twice& net) { net->in->weight.set_data(torch::zeros_like(net->in->weight)); };
  for (const int zero : {0, 1, 2, 3}) {
    SCOPED_TRACE(zero);
    if (zero > 0) says(said_after({.zero = zero}, freeze), "twice.0 = frozen");
    says(said_after({.zero = zero}, release), "head.1 = released");
    says(said_after({.zero = zero}, convert), zero == 3 ? "are sharded: they are whole only" : "in.0 = Float[6, 4]");
  }
  using enum ReplicationKind;
  for (const auto way : {LocalSgd, DiLoCo}) says(said_after({.replication = way}, freeze), "twice.0 = frozen");
  for (const auto way : {ParameterServer, DiLoCo}) {
    says(said_after({.replication = way}, replace), "in.0 = replaced");
  }
  EXPECT_EQ(said_after({.replication = LocalSgd}, replace), "nothing was refused");
}

// A layer whose module can be exchanged.
struct ExchangedImpl : torch::nn::Module {
  ExchangedImpl() { register_module("fc", torch::nn::Linear(4, 2)); }
  at::Tensor forward(const at::Tensor& x) {
    return std::dynamic_pointer_cast<torch::nn::LinearImpl>(named_children()["fc"])->forward(x);
  }
};
TORCH_MODULE(Exchanged);

TEST(ChangedModules, AModuleExchangedLaterIsRefused) {
  run_ranks(1, [](Communicator& world) {
    Exchanged net;
    DataParallel parallel(LayerList().add("net", net), world);
    net->replace_module("fc", torch::nn::Linear(4, 2));
    try {
      parallel.backward(parallel.forward(torch::ones({1, 4})).sum());
      ADD_FAILURE() << "nothing was refused";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("net.0 = released"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("layers = 2 parameters removed"), std::string::npos) << error.what();
    }
  });
}

// The head's bias is released, and the rest goes on where it was.
TEST(ChangedModules, AnotherDataParallelIsMadeOfChangedModules) {
  for (const int zero : {0, 1, 2, 3}) {
    std::vector<Twice> nets{Twice(1), Twice(2)};
    for (Twice& net : nets) net->head->bias.requires_grad_(false);
    Twice alone(1);
    torch::optim::SGD serial(alone->parameters(), 0.1);
    for (int step = 0; step < 2; ++step) {
      alone->head->bias.requires_grad_(step == 1);
      serial.zero_grad();
      const auto& [x, y] = pairs_of(step);
      mean_square_of(alone(x), y).backward();
      serial.step();
    }
    run_ranks(2, [&](Communicator& world) {
      Twice& net = nets[world.rank()];
      const auto make = [&] { return std::make_unique<DataParallel>(net->layers(), world, options_of(zero)); };
      auto parallel = make();
      for (int step = 0; step < 2; ++step) {
        if (step == 1) {
          net->head->bias.requires_grad_(true);
          std::unique_ptr<DataParallel> next;
          parallel->with_whole_parameters([&] { next = make(); });
          parallel = std::move(next);
        }
        torch::optim::SGD optimizer(parallel->parameters(), 0.1);
        const Pairs& all = pairs_of(step);
        parallel->backward(mean_square_of(parallel->forward(half_of(all.x, world)), half_of(all.y, world)));
        parallel->step(optimizer);
      }
      parallel->with_whole_parameters([&] { expect_close_to(copies_of(net), copies_of(alone)); });
    });
  }
}

TEST(ChangedModules, WithPlainSumsAFrozenParameterStaysAsItIs) {
  std::vector<Twice> nets{Twice(1), Twice(1)};
  run_ranks(2, [&](Communicator& world) {
    Twice& net = nets[world.rank()];
    DataParallel parallel(net->layers(), world);
    torch::optim::Adam optimizer(parallel.parameters(), torch::optim::AdamOptions(0.1));
    at::Tensor frozen, trained;
    for (int step = 0; step < 3; ++step) {
      if (step == 1) {
        net->twice->weight.requires_grad_(false);
        frozen = net->twice->weight.detach().clone();
        trained = net->in->weight.detach().clone();
      }
      const Pairs& all = pairs_of(step);
      parallel.backward(mean_square_of(parallel.forward(half_of(all.x, world)), half_of(all.y, world)));
      parallel.step(optimizer);
    }
    EXPECT_TRUE(frozen.equal(net->twice->weight));
    EXPECT_FALSE(trained.equal(net->in->weight));
  });
  expect_close_to(copies_of(nets[0]), copies_of(nets[1]));
}

}  // namespace
}  // namespace braid::modules::changed_modules_test
