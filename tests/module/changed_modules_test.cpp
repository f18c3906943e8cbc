// Changes of users' modules after construction: values loaded, other types, parameters frozen, released
// or replaced. It is followed, or refused by name.
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <mutex>
#include <sstream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace braid::modules::changed_modules_test {
namespace {

constexpr int kStepsOfChange = 3;

// One layer is two of the list.
struct TwiceImpl : torch::nn::Module {
  explicit TwiceImpl(uint64_t seed) {
    torch::manual_seed(seed);
    in = register_module("first", torch::nn::Linear(4, 6));
    twice = register_module("twice", torch::nn::Linear(6, 6));
    head = register_module("head", torch::nn::Linear(6, 2));
    to(at::kDouble);
  }
  LayerList layers() {
    LayerList list;
    list.add("in", in).add("twice", twice).add("act", torch::nn::Tanh()).add("again", twice).add("head", head);
    return list;
  }
  at::Tensor forward(const at::Tensor& x) { return head(twice(twice(in(x)).tanh())); }
  torch::nn::Linear in{nullptr}, twice{nullptr}, head{nullptr};
};
TORCH_MODULE(Twice);

at::Tensor mean_square_of(const at::Tensor& output, const at::Tensor& target) {
  return (output - target).square().mean();
}

struct Pairs {
  at::Tensor x, y;
};
// Ranks that are threads share the generator.
const Pairs& pairs_of(int step) {
  static const std::vector<Pairs> all = [] {
    std::vector<Pairs> made;
    torch::manual_seed(10);
    for (int i = 0; i < kStepsOfChange; ++i) {
      made.push_back({torch::randn({8, 4}, at::kDouble), torch::randn({8, 2}, at::kDouble)});
    }
    return made;
  }();
  return all[static_cast<size_t>(step)];
}

std::string checkpoint() {
  const Twice other(77);
  std::ostringstream written;
  torch::save(other, written);
  return written.str();
}

// Torch's archives are not for several threads at once.
void load_into(Twice& net, const std::string& file) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  std::istringstream read(file);
  torch::load(net, read);
}

// The same, where the tensors it replaces may have no memory.
void load_into(Twice& net, const std::string& file, DataParallel& parallel) {
  parallel.with_whole_parameters([&] { load_into(net, file); });
}

enum class LoadAt { BetweenSteps, BeforeUpdate };

Tensors copies_of(Twice& net) {
  Tensors all;
  for (const at::Tensor& each : net->parameters()) all.push_back(each.detach().clone());
  return all;
}

// One rank, which loads in the second step.
Tensors serial_with_load(LoadAt when) {
  Twice net(1);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < kStepsOfChange; ++step) {
    if (step == 1 && when == LoadAt::BetweenSteps) load_into(net, checkpoint());
    optimizer.zero_grad();
    const auto& [x, y] = pairs_of(step);
    mean_square_of(net(x), y).backward();
    if (step == 1 && when == LoadAt::BeforeUpdate) load_into(net, checkpoint());
    optimizer.step();
  }
  return copies_of(net);
}

void expect_close_to(const Tensors& found, const Tensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-10) << "parameter " << i;
  }
}

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
    says(said_after({.zero = zero}, convert), zero == 3 ? "the ranks share out in.0" : "in.0 = Float[6, 4]");
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

// One of two data ranks of a pipeline of one rank. Both see the same rows.
struct DataRank {
  ModulePipeline& pipeline;
  Twice& net;
  torch::optim::SGD& optimizer;

  void step(int number) {
    const auto& [x, y] = pairs_of(number);
    pipeline.step({x}, {y});
  }
};
using DataRankStep = std::function<void(DataRank, int step)>;

std::vector<Twice> on_two_data_ranks(const SyncSpec& sync, const DataRankStep& each) {
  std::vector<Twice> nets{Twice(1), Twice(2)};
  for (Twice& net : nets) net->head->bias.requires_grad_(false);
  run_ranks(2, [&](Communicator& world) {
    Twice& net = nets[world.rank()];
    const auto pipe = world.split(world.rank(), 0, "pipe");
    ModulePipeline pipeline(net->layers(), *pipe,
                            {.schedule = schedule::gpipe(1, 2), .loss = mean_square_of, .data = &world, .sync = sync});
    Tensors trained;
    for (const at::Tensor& parameter : pipeline.parameters()) {
      if (parameter.requires_grad()) trained.push_back(parameter);
    }
    torch::optim::SGD optimizer(trained, 0.1);
    for (int step = 0; step < kStepsOfChange; ++step) each({pipeline, net, optimizer}, step);
  });
  return nets;
}

TEST(ChangedModules, APipelineTakesInWhatIsLoadedLater) {
  const std::string file = checkpoint();
  Twice alone(1);
  torch::optim::SGD serial(alone->parameters(), 0.1);
  alone->head->bias.requires_grad_(false);
  for (int step = 0; step < kStepsOfChange; ++step) {
    if (step == 1) load_into(alone, file);
    serial.zero_grad();
    const auto& [x, y] = pairs_of(step);
    mean_square_of(alone(x), y).backward();
    if (step == 2) load_into(alone, file);
    serial.step();
  }
  for (const SyncSpec& sync : {SyncSpec{}, SyncSpec{.zero = 1}, SyncSpec{.replication = ReplicationKind::LocalSgd}}) {
    auto nets = on_two_data_ranks(sync, [&](DataRank rank, int step) {
      if (step == 1) load_into(rank.net, file);
      rank.optimizer.zero_grad();
      rank.step(step);
      if (step == 2) load_into(rank.net, file);
      rank.pipeline.update(rank.optimizer);
    });
    for (Twice& net : nets) expect_close_to(copies_of(net), copies_of(alone));
  }
}

std::string pipeline_said(const SyncSpec& sync, const std::function<void(Twice&)>& change) {
  try {
    on_two_data_ranks(sync, [&](DataRank rank, int step) {
      if (step == 1) change(rank.net);
      rank.step(step);
      rank.pipeline.update(rank.optimizer);
    });
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(ChangedModules, APipelineRefusesWhatItsReplicasCannotFollow) {
  const auto freeze = [](Twice& net) { net->twice->weight.requires_grad_(false); };
  const auto release = [](Twice& net) { net->head->bias.requires_grad_(true); };
  const std::string frozen = pipeline_said({.zero = 1}, freeze), released = pipeline_said({}, release);
  EXPECT_NE(frozen.find("twice.0 = frozen"), std::string::npos) << frozen;
  EXPECT_NE(released.find("head.1 = released"), std::string::npos) << released;
  EXPECT_NE(released.find("retrace()"), std::string::npos) << released;
  EXPECT_EQ(pipeline_said({}, freeze), "nothing was refused");
}

// Under sync.zero the optimizer's tensors are not the modules'; clearing either clears the same gradients.
TEST(ChangedModules, GradientsOfAPipelineAreClearedByModuleOrOptimizer) {
  const auto trained = [](const std::function<void(DataRank)>& clear) {
    auto nets = on_two_data_ranks({.zero = 1}, [&](DataRank rank, int step) {
      clear(rank);
      rank.step(step);
      rank.pipeline.update(rank.optimizer);
    });
    return copies_of(nets[0]);
  };
  const Tensors expected = trained([](DataRank rank) { rank.optimizer.zero_grad(); });
  expect_close_to(trained([](DataRank rank) { rank.net->zero_grad(); }), expected);
  expect_close_to(trained([](DataRank rank) { rank.net->zero_grad(false); }), expected);
}

}  // namespace
}  // namespace braid::modules::changed_modules_test
