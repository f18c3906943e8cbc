// Models with parameters and gradients on disk train with the bits of those in memory.
#include "braid/module/model_memory.h"

#include <ATen/ops/embedding.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <optional>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/optimizer_on_disk.h"
#include "braid/param/memory_account.h"
#include "tests/module/saved_models.h"

namespace braid::modules::model_memory_test {
namespace {

using namespace saved_models;
using torch::nn::Linear;

constexpr int kSteps = 3;
constexpr int64_t kWidth = 40, kBatchRows = 16, kWords = 9;

struct Case {
  int ranks;
  SyncSpec sync;
  Kept parameters, gradients;
};
void PrintTo(const Case& of, std::ostream* out) {
  const auto word = [](Kept kept) { return kept == Kept::OnDisk ? " on disk" : " in memory"; };
  *out << of.ranks << " ranks, zero " << of.sync.zero << ", group " << of.sync.zero_group << ", parameters"
       << word(of.parameters) << ", gradients" << word(of.gradients);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::pair<int, SyncSpec> ranks[] = {{1, {}},
                                            {1, {.zero = 3}},
                                            {2, {}},
                                            {2, {.zero = 1}},
                                            {2, {.zero = 2}},
                                            {2, {.zero = 3}},
                                            {4, {.zero = 3, .zero_group = 2}}};
  for (const auto& [count, sync] : ranks) {
    for (const auto& [parameters, gradients] :
         {std::pair(Kept::OnDisk, Kept::OnDisk), {Kept::OnDisk, Kept::InMemory}, {Kept::InMemory, Kept::OnDisk}}) {
      all.push_back({count, sync, parameters, gradients});
    }
  }
  return all;
}

// A table that is used twice, a layer of no use for the loss, a recomputed layer, dropout.
LayerList model() {
  torch::manual_seed(7);
  const at::Tensor table = at::randn({kWords, kWidth}).requires_grad_(true);
  const Linear unused(3, 5);
  const auto look_up = [table](const at::Tensor& words) { return at::embedding(table, words); };
  const auto logits = [table](const at::Tensor& x) { return x.matmul(table.t()); };
  const auto ignore = [](const at::Tensor& x) { return x * 1.5; };
  LayerList layers;
  layers.add("words", look_up, {.parameters = {table}})
      .add("first", Linear(kWidth, kWidth))
      .add("drop", KeyedDropout(0.2))
      .add("ignore", ignore, {.parameters = {unused->weight, unused->bias}})
      .add("second", Linear(kWidth, kWidth), {.activations = Activations::Recomputed})
      .add("tanh", torch::nn::Tanh())
      .add("logits", logits, {.parameters = {table}});
  return layers;
}

// What one rank trains: a model, and words of each pass over it.
struct Part {
  LayerList layers;
  Tensors words;
};
std::vector<Part> parts(int ranks) {
  std::vector<Part> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back({model(), {}});
    torch::manual_seed(100 + rank);
    for (int pass = 0; pass < 3 * kSteps; ++pass) all.back().words.push_back(at::randint(kWords, {kBatchRows}));
  }
  return all;
}

at::Tensor loss_of(DataParallel& model, const at::Tensor& words) {
  return torch::cross_entropy_loss(model.forward(words), words.flip(0));
}

// Trains with two backwards in each step, of which all but the first clip the norm, twice. Evaluates between steps.
// Returns losses and norms.
template <class Step>
std::vector<double> train(DataParallel& model, const Tensors& words, const Step& step) {
  std::vector<double> numbers;
  for (int number = 0; number < kSteps; ++number) {
    for (const int pass : {0, 1}) {
      const at::Tensor loss = loss_of(model, words[3 * number + pass]);
      numbers.push_back(loss.item<double>());
      pass == 0 ? model.accumulate(loss) : model.backward(loss);
    }
    for (int clips = 0; number > 0 && clips < 2; ++clips) numbers.push_back(model.clip_grad_norm(0.1 / (1 + clips)));
    step();
    const c10::AutoGradMode no_grad(false);
    numbers.push_back(loss_of(model, words[3 * number + 2]).item<double>());
  }
  return numbers;
}

class ModelMemoryTest : public ScratchFolder {
 protected:
  ModelMemory memory(Kept parameters, Kept gradients) const {
    return {.parameters = parameters, .gradients = gradients, .folders = {folder_}, .chunk_bytes = 8192};
  }
  ModelMemory on_disk() const { return memory(Kept::OnDisk, Kept::OnDisk); }
};

class OfCase : public ModelMemoryTest, public testing::WithParamInterface<Case> {
 protected:
  // Trains, and exports weights to `file`. Returns the numbers of the last rank.
  std::vector<double> numbers(const ModelMemory& memory, const std::string& file) {
    std::vector<Part> all = parts(GetParam().ranks);
    std::vector<double> numbers;
    run_ranks(GetParam().ranks, [&](Communicator& world) {
      const Part& mine = all[static_cast<size_t>(world.rank())];
      SyncSpec sync = GetParam().sync;
      if (sync.zero == 1 && !memory.has_disk()) sync.zero = 2;  // the order of sums on disk
      DataParallel model(mine.layers, world, {.sync = sync, .memory = memory});
      torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(0.01).weight_decay(0.1));
      std::optional<OptimizerOnDisk> disk;
      if (memory.has_disk()) disk.emplace(optimizer, OptimizerOnDisk::Options{{folder_}, 8192});
      const auto step = [&] { disk ? model.step(*disk) : model.step(optimizer); };
      const auto own = train(model, mine.words, step);
      if (world.rank() + 1 == world.size()) numbers = own;
      model.export_weights(path(file));
    });
    return numbers;
  }
};
INSTANTIATE_TEST_SUITE_P(Cases, OfCase, testing::ValuesIn(cases()));

TEST_P(OfCase, HasTheBitsOfMemory) {
  const auto want = numbers({}, "memory");
  EXPECT_EQ(numbers(memory(GetParam().parameters, GetParam().gradients), "disk"), want);
  EXPECT_FALSE(content(path("memory")).empty());
  EXPECT_TRUE(content(path("disk")) == content(path("memory")));
}

// A model of one rank, its optimizer, and words.
struct Trained {
  const LayerList& layers;
  DataParallel& model;
  torch::optim::Optimizer& optimizer;
  OptimizerOnDisk& disk;
  const Tensors& words;

  void backward(int pass) const { model.backward(loss_of(model, words[pass])); }
  void step(int pass) const {
    backward(pass);
    model.step(disk);
  }
};

class OneRank : public ModelMemoryTest {
 protected:
  void on(const ModelMemory& memory, const std::function<void(const Trained&)>& body) {
    const std::vector<Part> all = parts(1);
    run_ranks(1, [&](Communicator& world) {
      DataParallel model(all[0].layers, world, {.memory = memory});
      torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      OptimizerOnDisk disk(optimizer, {{folder_}, 8192});
      body({all[0].layers, model, optimizer, disk, all[0].words});
    });
  }
};

TEST_F(OneRank, TakesOverValuesThatAreLoadedIntoModules) {
  std::vector<std::string> files;
  for (const ModelMemory& memory : {ModelMemory(), on_disk()}) {
    on(memory, [&](const Trained& rank) {
      rank.step(0);
      const at::Tensor weight = rank.layers[1].module->parameters()[0];
      rank.model.with_whole_parameters([&] { weight.set_data(at::full({kWidth, kWidth}, 0.01)); });
      rank.step(1);
      rank.model.export_weights(path("weights"));
    });
    files.push_back(content(path("weights")));
  }
  EXPECT_TRUE(files[0] == files[1]);
}

// What comes back from the disk is another value than was written. The program does not compute with it.
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

TEST_F(ModelMemoryTest, RefusesWithEverythingThatIsWrong) {
  const LayerList layers = model();
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

// Eight layers of 0.4 MB: one that runs and one that is read are in memory.
class EightLayers : public ModelMemoryTest {
 protected:
  static constexpr int64_t kLayerBytes = 4 * 320 * 321;

  EightLayers() {
    param::install_memory_accounting();
    torch::manual_seed(3);
    for (int layer = 0; layer < 8; ++layer) layers_.add(cat("fc", layer), Linear(320, 320));
  }
  // Trains on a rank that may hold `limit` bytes. Returns what it has held in the last step.
  param::MemoryUse trained(const ModelMemory& memory, int64_t limit) {
    const at::Tensor x = at::randn({4, 320});
    param::MemoryUse use;
    run_ranks(1, [&](Communicator& world) {
      param::account_memory_to(0);
      param::limit_memory(0, limit);
      DataParallel model(layers_, world, {.memory = memory});
      torch::optim::AdamW optimizer(model.parameters(), 0.1);
      OptimizerOnDisk disk(optimizer, {{folder_}, 8192});
      for (int step = 0; step < 3; ++step) {
        if (step == 2) param::reset_memory_peak(0);
        model.backward(model.forward(x).square().mean());
        model.step(disk);
      }
      use = param::memory_use(0);
    });
    param::limit_memory(0, 0);
    return use;
  }

  LayerList layers_;
};

TEST_F(EightLayers, TwoAreInMemory) {
  const param::MemoryUse use = trained(on_disk(), 0);
  EXPECT_LT(use.peak_bytes[static_cast<size_t>(param::MemoryCategory::Parameters)], 2.2 * kLayerBytes);
  EXPECT_LT(use.peak_total_bytes, 7 * kLayerBytes) << param::peak_text(0);
}

TEST_F(EightLayers, FitInALimitFromDiskOnly) {
  const int64_t limit = 8 * kLayerBytes;
  trained(on_disk(), limit);
  try {
    trained({}, limit);
    ADD_FAILURE() << "parameters and gradients are more than the limit";
  } catch (const MemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("parameters"), std::string::npos) << error.what();
  }
  param::limit_memory(0, 0);
}

}  // namespace
}  // namespace braid::modules::model_memory_test
