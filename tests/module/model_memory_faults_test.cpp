// Faults of models with parameters and gradients on disk: refusals, disks that change bits, passes that fail.
#include <torch/optim/adamw.h>

#include <algorithm>
#include <future>

#include "braid/base/errors.h"
#include "braid/base/memory_error.h"
#include "braid/module/module_pipeline.h"
#include "braid/param/memory_account.h"
#include "braid/schedule/generators.h"
#include "tests/module/models_on_disk.h"

namespace braid::modules::model_memory_faults_test {
namespace {

using namespace models_on_disk;

// The update does not leave old values of a layer that was read ahead and then did not run.
TEST_F(OneRank, AForwardThatFailsLeavesNothingBehind) {
  std::vector<double> losses;
  for (const ModelMemory& memory : {ModelMemory(), on_disk()}) {
    on(memory, [&](const Trained& rank) {
      rank.step(0);
      rank.backward(1);
      rank.model.clip_grad_norm(0.1);
      const c10::AutoGradMode no_grad(false);
      EXPECT_THROW(loss_of(rank.model, at::full({3}, kNumWords + 5)), c10::Error);
      rank.model.step(rank.disk);
      losses.push_back(loss_of(rank.model, rank.words[2]).item<double>());
    });
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST_F(OneRank, RefusesParametersThatAreFrozenLater) {
  for (const auto& [parameters, gradients] :
       {std::pair(Kept::OnDisk, Kept::InMemory), {Kept::InMemory, Kept::OnDisk}}) {
    on(memory(parameters, gradients), [&](const Trained& rank) {
      rank.step(0);
      rank.layers[1].module->parameters()[0].requires_grad_(false);
      EXPECT_THROW(rank.backward(1), ConfigError);
    });
  }
}

// Gradients that are added up over several backwards would be lost, or be part of another step.
TEST_F(OneRank, LoadsBetweenStepsOnly) {
  for (const ModelMemory& memory : {ModelMemory(), on_disk()}) {
    on(memory, [&](const Trained& rank) {
      rank.model.save(path("checkpoint"), rank.optimizer);
      rank.model.accumulate(loss_of(rank.model, rank.words[0]));
      EXPECT_THROW(rank.model.load(path("checkpoint"), rank.optimizer), InternalError);
    });
  }
}

TEST_F(OneRank, APipelineSavesAfterAStepThatFailed) {
  const Part part;
  const at::Tensor words = at::arange(kNumWords);
  const auto loss = [](const at::Tensor& x, const at::Tensor& y) { return torch::cross_entropy_loss(x, y); };
  run_ranks(1, [&](Communicator& pipe) {
    ModulePipeline model(part.layers, pipe, {.schedule = schedule::gpipe(1, 2), .loss = loss, .memory = on_disk()});
    torch::optim::AdamW optimizer(model.parameters(), 0.1);
    *part.fails = true;
    EXPECT_THROW(model.step({words}, {words}), std::runtime_error);
    *part.fails = false;
    EXPECT_THROW(model.step({words}, {words}), RunError);
    model.save(path("checkpoint"), optimizer);
    model.load(path("checkpoint"), optimizer);
  });
}

TEST_F(OneRank, LoadsAfterABackwardThatFailed) {
  on(on_disk(), [&](const Trained& rank) {
    rank.step(0);
    rank.model.save(path("checkpoint"), rank.optimizer);
    rank.model.export_weights(path("before"));
    rank.step(1);
    rank.fails = true;
    EXPECT_THROW(rank.backward(2), std::runtime_error);
    EXPECT_THROW(rank.model.step(rank.disk), RunError);
    rank.model.load(path("checkpoint"), rank.optimizer);
    rank.model.export_weights(path("after"));
  });
  EXPECT_TRUE(content(path("after")) == content(path("before")));
}

// The disk returns another value than was written. The program does not compute with it.
TEST_F(OneRank, FindsFlippedBits) {
  on(on_disk(), [&](const Trained& rank) {
    rank.step(0);
    rank.model.parameters()[1].detach()[3].fill_(7);
    EXPECT_THROW(loss_of(rank.model, rank.words[1]), RunError);
  });
  on(on_disk(), [&](const Trained& rank) {
    rank.step(0);
    rank.backward(1);
    rank.model.clip_grad_norm(1e9);
    rank.model.parameters()[1].grad()[3].fill_(7);
    EXPECT_THROW(rank.model.step(rank.disk), RunError);
    EXPECT_THROW(rank.model.step(rank.disk), RunError);
  });
  on(on_disk(), [&](const Trained& rank) {
    rank.model.parameters()[1].detach()[3].fill_(7);
    EXPECT_THROW(rank.model.save(path("checkpoint"), rank.optimizer), RunError);
  });
}

TEST_F(OneRank, RefusesOptimizersThatDoNotReadTheDisk) {
  on(on_disk(), [&](const Trained& rank) {
    rank.backward(0);
    EXPECT_THROW(rank.disk.step(), ConfigError);
    EXPECT_THROW(rank.model.step(rank.optimizer), ConfigError);
    EXPECT_THROW(rank.model.step([] { FAIL(); }), ConfigError);
    rank.model.step(rank.disk);
    Tensors reversed = rank.model.parameters();
    std::ranges::reverse(reversed);
    torch::optim::AdamW other(reversed, 0.1);
    OptimizerOnDisk other_disk(other, {{folder_}});
    rank.backward(1);
    EXPECT_THROW(rank.model.step(other_disk), ConfigError);
  });
}

TEST_F(OneRank, ClipsAfterARefusedStep) {
  std::vector<double> losses;
  for (const ModelMemory& memory : {ModelMemory(), on_disk()}) {
    on(memory, [&](const Trained& rank) {
      rank.backward(0);
      rank.model.clip_grad_norm(0.01);
      if (memory.has_disk()) {
        Tensors reversed = rank.model.parameters();
        std::ranges::reverse(reversed);
        torch::optim::AdamW other(reversed, 0.1);
        OptimizerOnDisk other_disk(other, {{folder_}});
        EXPECT_THROW(rank.model.step(other_disk), ConfigError);
      }
      rank.model.step(rank.disk);
      losses.push_back(loss_of(rank.model, rank.words[1]).item<double>());
    });
  }
  EXPECT_EQ(losses[0], losses[1]);
}

// An optimizer of other parameters has none of the gradients: its step would do nothing, and clear them.
TEST_F(OneRank, StepsAfterThatOfAnotherModelWasRefused) {
  Tensors other{torch::ones({5}).requires_grad_(true)};
  std::vector<double> losses;
  for (const ModelMemory& memory : {ModelMemory(), on_disk()}) {
    for (const bool refuses : {false, true}) {
      on(memory, [&](const Trained& rank) {
        torch::optim::AdamW wrong(other, 0.1);
        OptimizerOnDisk wrong_disk(wrong, {{folder_}});
        rank.backward(0);
        if (refuses) {
          EXPECT_THROW(rank.model.step(wrong_disk), ConfigError);
          EXPECT_THROW(rank.model.step(wrong), ConfigError);
        }
        rank.model.step(rank.disk);
        losses.push_back(loss_of(rank.model, rank.words[1]).item<double>());
      });
    }
  }
  EXPECT_EQ(losses, std::vector<double>(4, losses[0]));
}

TEST_F(ModelMemoryTest, RefusesWithEverythingThatIsWrong) {
  const LayerList layers = Part().layers;
  const auto refused = [&](const DataParallel::Options& options) -> std::string {
    try {
      run_ranks(1, [&](Communicator& world) { DataParallel(layers, world, options); });
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "nothing";
  };
  const auto expect_words = [](const std::string& message, const std::vector<std::string>& all) {
    for (const std::string& words : all) EXPECT_NE(message.find(words), message.npos) << words << " in " << message;
  };
  expect_words(refused({.memory = {.parameters = Kept::OnDisk, .chunk_bytes = 0}}),
               {"memory.folders", "memory.chunk_bytes"});
  expect_words(refused({.memory = {.parameters = Kept::OnDisk, .folders = {path("none"), "/dev/shm"}}}),
               {path("none"), "must exist", "/dev/shm", "tmpfs"});
  expect_words(refused({.memory = {.folders = {folder_}}}), {"memory.folders", "is not used"});
  for (const SyncSpec& sync :
       {SyncSpec{.replication = ReplicationKind::LocalSgd}, SyncSpec{.replication = ReplicationKind::ParameterServer},
        SyncSpec{.compression = CompressionKind::PowerSgd}}) {
    expect_words(refused({.sync = sync, .memory = on_disk()}), {"memory.parameters", "memory.gradients"});
  }
}

// Calls `body` with a model of one rank and its first module, then again with too little memory for any layer's
// parameters, then again.
void expect_again(const ModelMemory& memory, const std::function<double(DataParallel&, Linear&)>& body) {
  constexpr int kRank = 6;  // of the account; other tests have others
  param::install_memory_accounting();
  Linear first(30, 30);
  LayerList layers;
  layers.add("a", first).add("b", Linear(30, 30));
  std::async(std::launch::async, [&] {
    run_ranks(1, [&](Communicator& world) {
      param::account_memory_to(kRank);
      DataParallel model(layers, world, {.memory = memory});
      const c10::AutoGradMode no_grad(false);
      const double before = body(model, first);
      param::limit_memory(kRank, param::held_bytes(kRank) + 1000);
      EXPECT_THROW(body(model, first), MemoryError);
      param::limit_memory(kRank, 0);
      EXPECT_EQ(body(model, first), before);
    });
  }).get();
}

TEST_F(ModelMemoryTest, RunsAfterMemoryWasLacking) {
  const at::Tensor x = at::ones({1, 30});
  expect_again(on_disk(), [&](DataParallel& model, Linear&) { return model.forward(x).sum().item<double>(); });
  expect_again(on_disk(), [](DataParallel& model, Linear& first) {
    double sum = 0;
    model.with_whole_parameters([&] { sum = first->weight.sum().item<double>(); });
    return sum;
  });
}

// The parameters of the next layer are larger, and do not fit when they are read ahead.
TEST_F(ModelMemoryTest, UpdatesALayerAfterMemoryForTheNextWasLacking) {
  constexpr int kRank = 6;
  param::install_memory_accounting();
  torch::manual_seed(2);
  LayerList layers;
  layers.add("small", Linear(30, 30)).add("large", Linear(30, 3000));
  std::async(std::launch::async, [&] {
    run_ranks(1, [&](Communicator& world) {
      param::account_memory_to(kRank);
      DataParallel model(layers, world, {.memory = memory(Kept::OnDisk, Kept::InMemory)});
      torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      OptimizerOnDisk disk(optimizer, {{folder_}, 8192});
      const at::Tensor x = at::ones({2, 30});
      const at::Tensor first = model.forward(x).square().mean();
      model.backward(first);
      {
        const c10::AutoGradMode no_grad(false);
        param::limit_memory(kRank, param::held_bytes(kRank) + 100'000);
        EXPECT_THROW(model.forward(x), MemoryError);
        param::limit_memory(kRank, 0);
      }
      model.step(disk);
      at::Tensor small;
      model.with_whole_parameters([&] { small = layers[0].module->parameters()[0].detach().clone(); });
      EXPECT_TRUE(small.view(-1).equal(model.parameters()[0].detach().narrow(0, 0, small.numel())));
    });
  }).get();
}

}  // namespace
}  // namespace braid::modules::model_memory_faults_test
